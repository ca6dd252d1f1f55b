"""The URLs under /admin/reservations/reservation/ next to those of the ModelAdmin."""

from django.contrib.admin import AdminSite
from django.urls import URLPattern

from reservations.admin.closed_bookings import ClosedBookingPages
from reservations.admin.new_reservation.pages import NewReservationPages
from reservations.admin.reports.pages import ReportPages
from reservations.admin.timeline.pages import TimelinePages
from reservations.admin.today.pages import TodayPage


def get_urls(site: AdminSite) -> list[URLPattern]:
    pages = (
        *(ReportPages(site), TimelinePages(site), TodayPage(site), NewReservationPages(site)),
        ClosedBookingPages(site),
    )
    return [url for each in pages for url in each.urls()]
