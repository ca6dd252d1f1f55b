"""The lines of the ledger. They add up to zero, and never change."""

import operator
from collections.abc import Iterable
from functools import reduce

from django.conf import settings
from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Greatest
from django.db.models.lookups import Exact

from payments.ledger.accounts import BILL, Account, EventKind


def add_accounts(accounts: Iterable[Account]) -> Combinable:
    """An expression for what a line adds to these accounts together."""
    return reduce(operator.add, [Coalesce(F(account), Value(0)) for account in accounts])


class LedgerLine(models.Model):
    """What an event adds to the accounts of one center, in hundredths; debits are positive.

    As in a journal on paper, there is a column for each account; null means nothing. An event has a
    line for each center, and for each day of a meeting whose bill it changes.
    """

    at = models.DateTimeField()
    kind = models.CharField(max_length=10, choices=EventKind.choices)
    # The payment, refund or dispute that caused it ("payment 7"), if one did.
    cause = models.CharField(max_length=40, blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", db_index=False
    )
    # No index of these two: composite indexes begin with them.
    reservation = models.ForeignKey(
        "reservations.Reservation", models.PROTECT, related_name="ledger_lines", db_index=False
    )
    center = models.ForeignKey("centers.Center", models.PROTECT, related_name="+", db_index=False)
    currency = models.CharField(max_length=3)
    is_test = models.BooleanField("test payment", default=False)
    # The local day at the center on which it happened.
    day = models.DateField()
    # The local day of the meeting; only of lines that change a bill.
    meeting_day = models.DateField(null=True)
    # When income and tax count: on the day of the meeting, or on that of the line if that is later.
    # Nothing of a month that is over changes.
    recognized_on = models.GeneratedField(
        # PostgreSQL ignores what is null in a list.
        expression=Case(When(meeting_day__isnull=False, then=Greatest("day", "meeting_day"))),
        output_field=models.DateField(null=True),
        db_persist=True,
    )
    # How many bookings it adds (or takes away, if negative) to that day.
    bookings = models.SmallIntegerField(default=0)

    # A column for each account: vars() is the namespace of this class.
    vars().update({each.value: models.BigIntegerField(null=True) for each in Account})

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Exact(add_accounts(Account), 0),
                name="ledger_line_adds_up",
            ),
            models.CheckConstraint(
                condition=Q(meeting_day__isnull=False)
                | Q(**{f"{account}__isnull": True for account in sorted(BILL)}),
                name="ledger_line_of_a_bill_has_its_meeting",
            ),
            models.CheckConstraint(
                condition=Q(kind__in=EventKind.values), name="ledger_line_kind_is_known"
            ),
        ]
        indexes = [
            models.Index(fields=["center", "day"], name="ledger_line_by_day"),
            # What is owed for each reservation is added up without a look at the table.
            models.Index(
                fields=[
                    *("reservation", "center", "day", "is_test", "currency"),
                    *("receivables", "refunds_payable"),
                ],
                name="ledger_line_by_reservation",
            ),
            models.Index(
                fields=["recognized_on", "center"],
                condition=Q(meeting_day__isnull=False),
                name="ledger_line_by_recognition",
            ),
            # `verify_integrity` names them.
            models.Index(
                fields=["at"], condition=Q(kind="corrected"), name="ledger_line_corrected"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of reservation {self.reservation_id}"

    @property
    def amounts(self) -> list[tuple[Account, int]]:
        """The accounts that the line changes, and by how much."""
        amounts = [(account, getattr(self, account)) for account in Account]
        return [(account, amount) for account, amount in amounts if amount]
