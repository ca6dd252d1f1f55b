"""The pages of our own beside the lists of reservations, under /admin/reservations/reservation/."""

from django.contrib.admin import AdminSite
from django.urls import URLPattern

from reservations.office.draft import DraftPages
from reservations.office.reports import ReportPages
from reservations.office.timeline_pages import TimelinePages


def urls(site: AdminSite) -> list[URLPattern]:
    return [*ReportPages(site).urls(), *TimelinePages(site).urls(), *DraftPages(site).urls()]
