"""Every address of the service: the contract's operations in its order, then the rest."""

from django.conf import settings
from django.conf.urls.static import static
from django.contrib import admin
from django.urls import URLPattern, path, re_path

from accounts.views import (
    ChangePassword,
    RemoveThumbnail,
    SignIn,
    SignOut,
    UpdateAccountInfo,
)
from centers.views import CityCenters, SearchLocations, UpdateFavorite
from payments import webhooks
from payments.views import RemovePaymentInfo, UpdatePaymentInfo
from reservations.views import (
    CancelReservation,
    Checkout,
    CheckRoomAvailability,
    CreateReservation,
    GetAllowances,
    GetReservation,
    ListReservations,
    ReservationCost,
    UpdateAllowances,
    UpdatePromoCode,
)
from roombook.api.exceptions import unknown_path
from roombook.api.operations import Operation
from roombook.health import healthz, readyz


def operation(route: str, view: type[Operation]) -> URLPattern:
    """The path with and without the suffix of a format; another suffix is another path."""
    return re_path(rf"^{route}(?:\.(?P<format>json|csv))?\Z", view.as_view())


contract = [
    operation("api/sign-in", SignIn),
    operation("api/account/reservation", GetReservation),
    operation("api/account/update-info", UpdateAccountInfo),
    operation("api/account/update-payment-info", UpdatePaymentInfo),
    operation("api/account/remove-thumbnail", RemoveThumbnail),
    operation("api/change-password", ChangePassword),
    operation("api/locations/search", SearchLocations),
    operation("api/city-centers", CityCenters),
    operation("api/meeting-rooms/check-availability", CheckRoomAvailability),
    operation("api/reservations/cost", ReservationCost),
    operation("api/reservation/update-promo-code", UpdatePromoCode),
    operation("api/reservations/get-allowances", GetAllowances),
    operation("api/reservations/checkout", Checkout),
]

# Beyond the contract, by the same conventions (B17).
extensions = [
    operation("api/reservations/create", CreateReservation),
    operation("api/reservations/cancel", CancelReservation),
    operation("api/reservations/update-allowances", UpdateAllowances),
    operation("api/account/reservations", ListReservations),
    operation("api/account/update-favorite", UpdateFavorite),
    operation("api/account/remove-payment-info", RemovePaymentInfo),
    operation("api/sign-out", SignOut),
]

urlpatterns = [
    *contract,
    *extensions,
    re_path(r"^api(?:/|\Z)", unknown_path),
    path("healthz", healthz),
    path("readyz", readyz),
    path("webhooks/stripe", webhooks.stripe),
    path("admin/", admin.site.urls),
    *static(settings.MEDIA_URL, document_root=settings.MEDIA_ROOT),  # With DEBUG on only.
]

handler400 = "roombook.api.exceptions.handler400"
handler403 = "roombook.api.exceptions.handler403"
handler404 = "roombook.api.exceptions.handler404"
handler500 = "roombook.api.exceptions.handler500"
