"""All URLs of the service: the operations of the contract in its order, then the others."""

from django.conf import settings
from django.conf.urls.static import static
from django.contrib import admin
from django.urls import URLPattern, path, re_path

from accounts import views as accounts
from centers import views as centers
from payments import pages, webhooks
from payments import views as payments
from reservations.views import account, bookings, integrations, rooms
from reservations.views.calendar_feed import show_calendar
from reservations.views.payment_link import finish_payment_link, show_payment_link
from roombook.api.errors import handle_unknown_path
from roombook.api.operations import Operation
from roombook.api.views import serve_openapi, show_docs
from roombook.health import healthz, readyz


def operation_path(route: str, view: type[Operation]) -> URLPattern:
    """The path of an operation, with and without the suffix of a format."""
    return re_path(rf"^{route}(?:\.(?P<format>json|csv))?\Z", view.as_view(), name=route)


contract_paths = [
    operation_path("api/sign-in", accounts.SignIn),
    operation_path("api/account/reservation", bookings.GetReservation),
    operation_path("api/account/update-info", accounts.UpdateAccountInfo),
    operation_path("api/account/update-payment-info", payments.UpdatePaymentInfo),
    operation_path("api/account/remove-thumbnail", accounts.RemoveAccountThumbnail),
    operation_path("api/change-password", accounts.ChangePassword),
    operation_path("api/locations/search", centers.SearchLocations),
    operation_path("api/city-centers", centers.CityCenters),
    operation_path("api/meeting-rooms/check-availability", rooms.CheckRoomAvailability),
    operation_path("api/reservations/cost", rooms.ReservationCost),
    operation_path("api/reservation/update-promo-code", bookings.UpdatePromoCode),
    operation_path("api/reservations/get-allowances", bookings.GetAllowances),
    operation_path("api/reservations/checkout", bookings.Checkout),
]

# Beyond the contract, with the same conventions (B17).
extension_paths = [
    operation_path("api/meeting-rooms/prices", centers.ListPrices),
    operation_path("api/meeting-rooms/free-times", rooms.ListFreeTimes),
    operation_path("api/meeting-rooms/alternatives", rooms.FindAlternatives),
    operation_path("api/reservations/payment-action", bookings.GetPaymentAction),
    operation_path("api/reservations/create", bookings.CreateReservation),
    operation_path("api/reservations/cancel", bookings.CancelReservation),
    operation_path("api/reservations/terms", bookings.GetTerms),
    operation_path("api/reservations/receipt", bookings.GetReceipts),
    operation_path("api/reservations/preview-change", bookings.PreviewChange),
    operation_path("api/reservations/change", bookings.ChangeReservation),
    operation_path("api/reservations/update-allowances", bookings.UpdateAllowances),
    operation_path("api/account/reservations", bookings.ListReservations),
    operation_path("api/account/calendar", accounts.GetCalendar),
    operation_path("api/account/export", account.ExportAccount),
    operation_path("api/account/delete", account.DeleteAccount),
    operation_path("api/account/update-favorite", centers.UpdateFavorite),
    operation_path("api/account/remove-payment-info", payments.RemovePaymentInfo),
    operation_path("api/account/create-payment-setup", payments.CreatePaymentSetup),
    operation_path("api/account/complete-payment-setup", payments.CompletePaymentSetup),
    operation_path("api/sign-out", accounts.SignOut),
    operation_path("api/account/create", accounts.CreateAccount),
    operation_path("api/account/confirm-email", accounts.ConfirmEmail),
    operation_path("api/account/request-password-reset", accounts.RequestPasswordReset),
    operation_path("api/account/reset-password", accounts.ResetPassword),
    operation_path("api/account/change-email", accounts.ChangeEmail),
    operation_path("api/integrations/changes", integrations.ListReservationChanges),
]

urlpatterns = [
    *contract_paths,
    *extension_paths,
    re_path(r"^api(?:/|\Z)", handle_unknown_path),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    re_path(r"^calendar/(?P<secret>[0-9a-f]{64})\.ics\Z", show_calendar, name="calendar"),
    re_path(
        r"^receipt-file/(?P<secret>[\w:-]{1,200})\.pdf\Z",
        bookings.show_receipt,
        name="receipt-file",
    ),
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
