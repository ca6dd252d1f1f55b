"""Checks of all tables: guards that are there, copies as their sources, times in their order."""

import datetime as dt
import re
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.models import F, Q

from centers.models import Center, MeetingRoom, Service
from payments.models import Dispute, GatewayCheckpoint, LedgerLine, Payment, Refund
from reservations.booking.integrity.common import CheckList, Rows
from reservations.models import (
    AllowanceEntry,
    BookingChange,
    ChosenService,
    PromoRedemption,
    ReceiptEntry,
    Reservation,
)
from reservations.models.constraints import TRIGGERS, PostgresExclusion
from reservations.models.status import HOLDING_STATUSES, Status

CHECKS = CheckList()

# Of the migrations that keep the ledger and receipts as they are.
KEPT = {
    "ledger_line_never_changes",
    "receipt_never_changes",
    "receipt_is_never_deleted",
    "receipt_entry_never_changes",
    "receipt_entry_is_never_deleted",
    "receipt_series_never_falls",
}
KEPT_ON_SQLITE = {"ledger_line_is_never_deleted", "ledger_line_is_never_replaced", *TRIGGERS}

# The constraints, indexes and triggers of the database. SQLite has constraints in their tables.
NAMES = {
    "postgresql": "SELECT conname FROM pg_constraint UNION SELECT relname FROM pg_class UNION"
    " SELECT tgname FROM pg_trigger WHERE tgenabled <> 'D'",
    "sqlite": "SELECT name || ' ' || sql FROM sqlite_master WHERE sql IS NOT NULL",
}

# By model: when its rows are made, and what can only happen after that.
TIMES: tuple[tuple[type[Any], str, tuple[str, ...]], ...] = (
    (Reservation, "created_at", ("created_at", "booked_at", "cancelled_at", "checked_in_at")),
    (Payment, "reservation__created_at", ("created_at",)),
    (Payment, "created_at", ("authorized_at", "captured_at", "received_at", "closed_at")),
    (Refund, "payment__created_at", ("created_at", "done_at")),
    (Dispute, "opened_at", ("opened_at", "closed_at")),
    (BookingChange, "created_at", ("created_at", "resolved_at")),
    (PromoRedemption, "taken_at", ("taken_at", "given_back_at")),
    (GatewayCheckpoint, "compared_until", ("compared_until",)),
)

# What two rows say that belong together: the model, its copy, the source, and which rows count.
IS_OPEN = Q(reservation__status__in=[Status.NEW, *sorted(HOLDING_STATUSES)])
COPIES: tuple[tuple[type[Any], str, str, Q], ...] = (
    (Payment, "currency", "reservation__currency", Q()),
    (Payment, "reservation_uid", "reservation__uid", Q()),
    # What is captured stays at the center that had the booking then.
    (Payment, "cash_center", "reservation__room__center", Q(state="authorized", counts=True)),
    (Dispute, "currency", "payment__currency", Q()),
    (LedgerLine, "currency", "reservation__currency", Q()),
    (ReceiptEntry, "receipt__currency", "payment__currency", Q()),
    (ReceiptEntry, "receipt__reservation", "payment__reservation", Q()),
    (AllowanceEntry, "allowance__user", "reservation__user", Q()),
    (PromoRedemption, "promo_code", "reservation__promo_code", Q(given_back_at=None)),
    (MeetingRoom, "rate__center", "center", Q(rate__isnull=False)),
    (MeetingRoom, "terms__center", "center", Q(terms__isnull=False)),
    (Service, "rate__center", "center", Q(rate__isnull=False)),
    (Center, "terms__center", "pk", Q(terms__isnull=False)),
    (ChosenService, "service__center", "reservation__room__center", IS_OPEN),
)


@CHECKS.add("{} {}: its {} is {}, and {} {}")
def copies_off_their_source(now: dt.datetime) -> Rows:
    for model, copy, source, is_compared in COPIES:
        rows = model.objects.filter(is_compared).exclude(**{copy: F(source)})
        for pk, found, expected in rows.values_list("pk", copy, source):
            yield model._meta.verbose_name, pk, copy, found, source, expected
    bills = Reservation.objects.exclude(currency=settings.CURRENCY)
    for pk, found in bills.values_list("pk", "currency"):
        yield "reservation", pk, "currency", found, "CURRENCY", settings.CURRENCY


@CHECKS.add("{} {}: {} is {}, and {} {}")
def times_out_of_order(now: dt.datetime) -> Rows:
    day = dt.timedelta(days=1)  # More than clocks differ by.
    for model, made, times in TIMES:
        for time in times:
            rows = model.objects.filter(
                Q(**{f"{time}__lt": F(made) - day}) | Q(**{f"{time}__gt": now + day})
            )
            for pk, at, made_at in rows.values_list("pk", time, made):
                yield model._meta.verbose_name, pk, time, at, made, made_at


@CHECKS.add("the database lacks {}")
def missing_guards(now: dt.datetime) -> Rows:
    is_sqlite = connection.vendor == "sqlite"
    expected = KEPT | (KEPT_ON_SQLITE if is_sqlite else set())
    for model in apps.get_models():
        for guard in (*model._meta.constraints, *model._meta.indexes):
            if not (is_sqlite and isinstance(guard, PostgresExclusion)):
                expected.add(guard.name)
    with connection.cursor() as cursor:
        cursor.execute(NAMES[connection.vendor])
        found = set(re.findall(r"\w+", " ".join(text for (text,) in cursor.fetchall())))
    return [(name,) for name in sorted(expected - found)]
