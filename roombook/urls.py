"""All URLs of the service: the operations of the contract in its order, then the others."""

from django.conf import settings
from django.conf.urls.static import static
from django.contrib import admin
from django.urls import URLPattern, path, re_path

from accounts.views.account import (
    ChangePassword,
    GetCalendar,
    RemoveAccountThumbnail,
    SignIn,
    SignOut,
    UpdateAccountInfo,
)
from accounts.views.sign_up import (
    ChangeEmail,
    ConfirmEmail,
    CreateAccount,
    RequestPasswordReset,
    ResetPassword,
)
from centers.views import CityCenters, ListPrices, SearchLocations, UpdateFavorite
from payments import pages, webhooks
from payments.views import (
    CompletePaymentSetup,
    CreatePaymentSetup,
    RemovePaymentInfo,
    UpdatePaymentInfo,
)
from reservations.views.account import DeleteAccount, ExportAccount
from reservations.views.bookings import (
    CancelReservation,
    Checkout,
    CreateReservation,
    GetAllowances,
    GetPaymentAction,
    GetReservation,
    GetTerms,
    ListReservations,
    UpdateAllowances,
    UpdatePromoCode,
)
from reservations.views.calendar_feed import show_calendar
from reservations.views.changes import ChangeReservation, PreviewChange
from reservations.views.integrations import ListReservationChanges
from reservations.views.payment_link import finish_payment_link, show_payment_link
from reservations.views.receipts import GetReceipts, show_receipt
from reservations.views.rooms import (
    CheckRoomAvailability,
    FindAlternatives,
    ListFreeTimes,
    ReservationCost,
)
from roombook.api.errors import handle_unknown_path
from roombook.api.operations import Operation
from roombook.api.views import serve_openapi, show_docs
from roombook.health import healthz, readyz


def operation_path(route: str, view: type[Operation]) -> URLPattern:
    """The path of an operation, with and without the suffix of a format."""
    return re_path(rf"^{route}(?:\.(?P<format>json|csv))?\Z", view.as_view(), name=route)


contract_paths = [
    operation_path("api/sign-in", SignIn),
    operation_path("api/account/reservation", GetReservation),
    operation_path("api/account/update-info", UpdateAccountInfo),
    operation_path("api/account/update-payment-info", UpdatePaymentInfo),
    operation_path("api/account/remove-thumbnail", RemoveAccountThumbnail),
    operation_path("api/change-password", ChangePassword),
    operation_path("api/locations/search", SearchLocations),
    operation_path("api/city-centers", CityCenters),
    operation_path("api/meeting-rooms/check-availability", CheckRoomAvailability),
    operation_path("api/reservations/cost", ReservationCost),
    operation_path("api/reservation/update-promo-code", UpdatePromoCode),
    operation_path("api/reservations/get-allowances", GetAllowances),
    operation_path("api/reservations/checkout", Checkout),
]

# Beyond the contract, with the same conventions (B17).
extension_paths = [
    operation_path("api/meeting-rooms/prices", ListPrices),
    operation_path("api/meeting-rooms/free-times", ListFreeTimes),
    operation_path("api/meeting-rooms/alternatives", FindAlternatives),
    operation_path("api/reservations/payment-action", GetPaymentAction),
    operation_path("api/reservations/create", CreateReservation),
    operation_path("api/reservations/cancel", CancelReservation),
    operation_path("api/reservations/terms", GetTerms),
    operation_path("api/reservations/receipt", GetReceipts),
    operation_path("api/reservations/preview-change", PreviewChange),
    operation_path("api/reservations/change", ChangeReservation),
    operation_path("api/reservations/update-allowances", UpdateAllowances),
    operation_path("api/account/reservations", ListReservations),
    operation_path("api/account/calendar", GetCalendar),
    operation_path("api/account/export", ExportAccount),
    operation_path("api/account/delete", DeleteAccount),
    operation_path("api/account/update-favorite", UpdateFavorite),
    operation_path("api/account/remove-payment-info", RemovePaymentInfo),
    operation_path("api/account/create-payment-setup", CreatePaymentSetup),
    operation_path("api/account/complete-payment-setup", CompletePaymentSetup),
    operation_path("api/sign-out", SignOut),
    operation_path("api/account/create", CreateAccount),
    operation_path("api/account/confirm-email", ConfirmEmail),
    operation_path("api/account/request-password-reset", RequestPasswordReset),
    operation_path("api/account/reset-password", ResetPassword),
    operation_path("api/account/change-email", ChangeEmail),
    operation_path("api/integrations/changes", ListReservationChanges),
]

urlpatterns = [
    *contract_paths,
    *extension_paths,
    re_path(r"^api(?:/|\Z)", handle_unknown_path),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    re_path(r"^calendar/(?P<secret>[0-9a-f]{64})\.ics\Z", show_calendar, name="calendar"),
    re_path(r"^receipt-file/(?P<secret>[\w:-]{1,200})\.pdf\Z", show_receipt, name="receipt-file"),
    re_path(r"^pay/(?P<secret>[\w:-]{1,500})\Z", show_payment_link, name="payment-link"),
    re_path(
        r"^pay/(?P<secret>[\w:-]{1,500})/(?P<setup>[0-9a-f-]{36})\Z",
        finish_payment_link,
        name="payment-link-return",
    ),
    path("payments/return", pages.show_return_page, name="payment-return"),
    path("payments/return/<uuid:setup>", pages.show_return_page, name="setup-return"),
    path("sandbox/setups/<str:secret>", pages.show_sandbox_setup, name="sandbox-setup"),
    path("sandbox/payments/<str:secret>", pages.show_sandbox_payment, name="sandbox-payment"),
    path("webhooks/stripe", webhooks.receive_stripe_event, name="webhooks/stripe"),
    path("docs", show_docs, name="docs"),
    path("openapi.json", serve_openapi, {"name": "openapi.json"}, name="openapi"),
    path("openapi-3.0.json", serve_openapi, {"name": "openapi-3.0.json"}, name="openapi-3.0"),
    path("admin/", admin.site.urls),
    *static(settings.MEDIA_URL, document_root=settings.MEDIA_ROOT),  # only with DEBUG on
]

handler400 = "roombook.api.errors.handler400"
handler403 = "roombook.api.errors.handler403"
handler404 = "roombook.api.errors.handler404"
handler500 = "roombook.api.errors.handler500"
