"""The personal data of reservations, allowances and promo codes (B22.10)."""

import datetime as dt

from django.db.models import Q, QuerySet

from reservations.models import (
    Allowance,
    AllowanceEntry,
    Attendee,
    BookingChange,
    Note,
    PriceAdjustment,
    PromoRedemption,
    Receipt,
    RefundOverride,
    Reservation,
)
from roombook.imports.models import MAX_AGE, Upload
from roombook.personal_data import (
    DAYS_PER_YEAR,
    Expiry,
    clear_rows,
    delete_rows,
    register,
    setting_days,
)

# The list whose files name accounts: reservations/resources.py.
ALLOWANCES_SHEET = "allowances"
NO_ATTENDEE = {"name": "", "email_address": "", "company_name": ""}


def _find_attendees(until: dt.datetime, *, is_booked: bool) -> QuerySet[Attendee]:
    return Attendee.objects.filter(
        reservation__end__lt=until, reservation__booked_at__isnull=not is_booked
    )


register(Reservation, "user created_by start end checked_in_at hours_override_reason")
register(
    Attendee,
    "name email_address company_name",
    erase=clear_rows(Attendee, lambda account: Q(reservation__user=account.pk), **NO_ATTENDEE),
    expiries=[
        Expiry(
            setting_days("ATTENDEE_DAYS"),
            lambda until: _find_attendees(until, is_booked=True),
            NO_ATTENDEE,
        ),
        Expiry(
            setting_days("DRAFT_DAYS"),
            lambda until: _find_attendees(until, is_booked=False),
            NO_ATTENDEE,
        ),
    ],
)
register(BookingChange, "by attendees start end")
register(
    Note,
    "reservation customer text author created_at",
    erase=delete_rows(
        Note, lambda account: Q(customer=account.pk) | Q(reservation__user=account.pk)
    ),
)
register(PriceAdjustment, "reason by")
register(RefundOverride, "reason by")
register(PromoRedemption, "user reservation")
register(
    Receipt,
    "reservation content issued_by",
    expiries=[
        Expiry(
            setting_days("BOOKS_YEARS", days_per_unit=DAYS_PER_YEAR),
            lambda until: Receipt.objects.filter(issued_at__lt=until),
            cleared={"content": {}},
        )
    ],
)
register(Allowance, "user description")
register(AllowanceEntry, "allowance reason")
register(
    Upload,
    "user file_name content",
    erase=delete_rows(Upload, lambda account: Q(user=account.pk) | Q(sheet=ALLOWANCES_SHEET)),
    expiries=[Expiry(lambda: MAX_AGE, lambda until: Upload.objects.filter(created_at__lt=until))],
)
