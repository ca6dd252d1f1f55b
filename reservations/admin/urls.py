"""The pages of our own beside the lists of reservations, under /admin/reservations/reservation/."""

from django.contrib.admin import AdminSite
from django.urls import URLPattern

from reservations.admin.new_reservation.pages import NewReservationPages
from reservations.admin.reports.pages import ReportPages
from reservations.admin.timeline.pages import TimelinePages


def urls(site: AdminSite) -> list[URLPattern]:
    return [
        *ReportPages(site).urls(),
        *TimelinePages(site).urls(),
        *NewReservationPages(site).urls(),
    ]
