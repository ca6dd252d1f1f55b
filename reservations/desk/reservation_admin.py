"""The ModelAdmin of reservations, composed of the list, its bulk actions and the page of one."""

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.urls import URLPattern

from accounts.admin.center_scope import CenterScopedMixin
from reservations.desk.bulk_actions import BulkActionsMixin, ClosedBookingPages
from reservations.desk.new_reservation.pages import NewReservationPages
from reservations.desk.receipts import ReceiptPagesMixin
from reservations.desk.reservation_list import ReservationListMixin
from reservations.desk.timeline.timeline import TimelinePages
from reservations.desk.today import TodayPage
from reservations.models import Reservation
from reservations.reports.pages import ReportPages
from roombook.backoffice.model_admin import ModelAdmin

PAGES = (ReportPages, TimelinePages, TodayPage, NewReservationPages, ClosedBookingPages)


@admin.register(Reservation)
class ReservationAdmin(
    ReservationListMixin,
    BulkActionsMixin,
    ReceiptPagesMixin,
    CenterScopedMixin,
    ModelAdmin,
):
    center_path = "room__center"

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Reservations are cancelled, not deleted: the record stays."""
        return False

    def get_urls(self) -> list[URLPattern]:
        # Before Django's own: they replace the page that adds a reservation.
        own = [url for pages in PAGES for url in pages(self.admin_site).urls()]
        return [*own, *super().get_urls()]
