"""The URLs under /admin/reservations/reservation/ next to those of the ModelAdmin."""

from django.contrib.admin import AdminSite
from django.urls import URLPattern

from reservations.desk.bulk_actions import ClosedBookingPages
from reservations.desk.new_reservation.pages import NewReservationPages
from reservations.desk.timeline.timeline import TimelinePages
from reservations.desk.today.pages import TodayPage
from reservations.reports.pages import ReportPages


def get_urls(site: AdminSite) -> list[URLPattern]:
    pages = (
        *(ReportPages(site), TimelinePages(site), TodayPage(site), NewReservationPages(site)),
        ClosedBookingPages(site),
    )
    return [url for each in pages for url in each.urls()]
