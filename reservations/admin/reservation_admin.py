"""Reservations in the back office: the list (listing.py), what is done to several of it at once
(bulk.py), the page of one with its steps (page.py); a new draft by staff is office/draft.py."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import URLPattern

from accounts.admin.center_scope import CenterScopedMixin
from reservations.admin import urls as office
from reservations.admin.bulk_actions import BulkActionsMixin
from reservations.admin.reservation_list import ReservationListMixin
from reservations.admin.reservation_page import ReservationPageMixin
from reservations.models import Reservation
from roombook.backoffice.model_admin import ModelAdmin


@admin.register(Reservation)
class ReservationAdmin(
    ReservationListMixin, BulkActionsMixin, ReservationPageMixin, CenterScopedMixin, ModelAdmin
):
    """Reservations. Status and money are never typed: steps call the same functions as the API."""

    center_path = "room__center"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Cancelled, never deleted: the record stays."""
        return False

    def get_urls(self) -> list[URLPattern]:
        # Ours first: a new reservation is made on a page of its own.
        return [*office.urls(self.admin_site), *super().get_urls()]
