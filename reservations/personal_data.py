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
UNDER_PSEUDONYM = "Stays, under the pseudonym, for bookkeeping."
NO_ATTENDEE = {"name": "", "email_address": "", "company_name": ""}


def _find_attendees(until: dt.datetime, *, is_booked: bool) -> QuerySet[Attendee]:
    return Attendee.objects.filter(
        reservation__end__lt=until, reservation__booked_at__isnull=not is_booked
    )


register(
    Reservation,
    "user created_by start end checked_in_at hours_override_reason",
    purpose="To book rooms, and for bookkeeping.",
    kept="For ever.",
    at_erasure=f"Drafts are cancelled. {UNDER_PSEUDONYM}",
)
register(
    Attendee,
    "name email_address company_name",
    purpose="Who attends a meeting, for the staff of the center.",
    kept="`ATTENDEE_DAYS` after the meeting; `DRAFT_DAYS` if it was never booked.",
    at_erasure="Cleared in the account's own reservations, not in those of others.",
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
register(
    BookingChange,
    "by attendees start end",
    purpose="What a customer or staff requested, until the payment for it is resolved.",
    kept="For ever; the attendees until the payment is resolved.",
    at_erasure=UNDER_PSEUDONYM,
)
register(
    Note,
    "reservation customer text author created_at",
    purpose="What staff wrote down about a reservation or a customer. Customers never see it.",
    kept="As long as the customer's account.",
    at_erasure="Deleted. What a former member of staff wrote about others stays.",
    erase=delete_rows(
        Note, lambda account: Q(customer=account.pk) | Q(reservation__user=account.pk)
    ),
)
register(
    PriceAdjustment,
    "reason by",
    purpose="Why staff changed a price, and who did.",
    kept="For ever.",
    at_erasure=UNDER_PSEUDONYM,
)
register(
    RefundOverride,
    "reason by",
    purpose="Why staff refunded another amount than the policy's, and who did.",
    kept="For ever.",
    at_erasure=UNDER_PSEUDONYM,
)
register(
    PromoRedemption,
    "user reservation",
    purpose="To limit the uses of promo codes by each customer.",
    kept="For ever.",
    at_erasure=UNDER_PSEUDONYM,
)
register(
    Receipt,
    "reservation content issued_by",
    purpose="What the documents of payments and refunds say: tax law requires it.",
    kept="For ever; what it says, with the customer's name and billing address, for `BOOKS_YEARS`.",
    at_erasure=(
        "Stays unchanged, with the customer's name and billing address: tax law requires it"
        " (B28.6)."
    ),
    expiries=[
        Expiry(
            setting_days("BOOKS_YEARS", days_per_unit=DAYS_PER_YEAR),
            lambda until: Receipt.objects.filter(issued_at__lt=until),
            cleared={"content": {}},
        )
    ],
)
register(
    Allowance,
    "user description",
    purpose="The included hours of a customer.",
    kept="For ever.",
    at_erasure=UNDER_PSEUDONYM,
)
register(
    AllowanceEntry,
    "allowance reason",
    purpose="The use of included hours.",
    kept="For ever.",
    at_erasure=UNDER_PSEUDONYM,
)
register(
    Upload,
    "user file_name content",
    purpose="A file that staff uploaded and have not confirmed yet.",
    kept="One day.",
    at_erasure="Deleted, if it is the account's own or a list with e-mail addresses.",
    erase=delete_rows(Upload, lambda account: Q(user=account.pk) | Q(sheet=ALLOWANCES_SHEET)),
    expiries=[Expiry(lambda: MAX_AGE, lambda until: Upload.objects.filter(created_at__lt=until))],
)
