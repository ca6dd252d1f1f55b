"""Each event posts to the ledger what docs/ledger.md says, and the database guards its lines."""

import datetime as dt
import functools
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import F

from accounts.act import Act
from centers.models import Center
from payments import fees, manual_payments, refunds
from payments.gateway_events import record_dispute
from payments.gateways.base import GatewayDispute, GatewayRefund
from payments.gateways.sandbox_models import SandboxPayment
from payments.ledger.accounts import EventKind
from payments.ledger.posting import find_unposted, post
from payments.models import LedgerLine, Payment, Refund
from payments.saved_cards import update_saved_card
from reservations.booking import (
    amendments,
    approval,
    attendance,
    cancellation,
    charging,
    differences,
    price_adjustments,
)
from reservations.booking.amendments import ChangeRequest, TakenPayment
from reservations.booking.checkout import book_draft
from reservations.models import Reservation
from roombook.money import from_hundredths
from tests.factories_centers import TermsFactory
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    PAYMENT_INFO,
    AllowanceFactory,
    make_booking,
    make_draft,
    make_room,
    pay,
)

pytestmark = pytest.mark.django_db

PAGE = Path("docs/ledger.md")
# A week after the booking.
START = NOW + dt.timedelta(days=7)


def event(**later: float) -> Callable[..., Any]:
    """What happens so much later. Returns the scene, so that one event follows another."""

    def decorate(happen: Callable[..., object]) -> Callable[..., "Scene"]:
        @functools.wraps(happen)
        def wrapper(self: "Scene", *args: Any, **kwargs: Any) -> "Scene":
            self.now += dt.timedelta(**later)
            happen(self, *args, **kwargs)
            return self

        return wrapper

    return decorate


class Scene:
    """A reservation of 50.00 and 10 % tax, and what happens to it, half an hour apart."""

    def __init__(
        self,
        *,
        is_live: bool = True,
        tax: Any = 10,
        is_gross: bool = False,
        hours: int = 2,
        no_show_percent: int | None = None,
        included_hours: int = 0,
    ) -> None:
        self.now, self.hours = NOW, hours
        self.staff = AdministratorFactory()
        self.customer = UserFactory(credit_limit=Decimal(1000))
        update_saved_card(self.customer, PAYMENT_INFO, now=NOW)
        self.room = self.make_room("Denver", is_live=is_live, tax=tax)
        center = self.room.center
        center.prices_include_tax = is_gross
        if no_show_percent is not None:
            center.terms = TermsFactory(center=center, no_show_percent=no_show_percent)
        center.save()
        if included_hours:
            AllowanceFactory(user=self.customer, hours=included_hours)

    def make_room(self, name, *, is_live=True, tax=10):
        room = make_room(time_zone_id="America/Denver", is_live_inventory=is_live)
        Center.objects.filter(pk=room.center_id).update(name=name, tax_rate=tax)
        room.refresh_from_db()
        return room

    @property
    def act(self):
        return Act(self.staff, self.now, is_staff=True)

    @property
    def payments(self):
        return Payment.objects.filter(reservation=self.booking.pk).order_by("pk")

    @event()
    def book(self, way="sandbox", **fields):
        options = {"start": START, "hours": self.hours, "now": self.now, **fields}
        if way == "sandbox":
            self.booking = make_booking(self.customer, self.room, **options)
        else:
            draft = make_draft(self.customer, self.room, **options)
            self.booking = book_draft(
                self.act, draft.pk, gateway=way, reference="17", shown_total=draft.total_cost
            )

    @event()
    def book_for_nothing(self):
        draft = make_draft(self.customer, self.room, start=START, hours=2, now=self.now)
        price_adjustments.adjust_price(self.act, draft.pk, amount=Decimal(-50), reason="Gift")
        self.booking = book_draft(self.act, draft.pk, gateway="cash", shown_total=Decimal(0))

    @event(minutes=30)
    def adjust(self, amount):
        price_adjustments.adjust_price(
            self.act, self.booking.pk, amount=Decimal(str(amount)), reason="Noise"
        )

    @event(minutes=30)
    def cancel(self, refund=None):
        decision = (
            None if refund is None else cancellation.RefundDecision(Decimal(refund), "Kindness")
        )
        cancellation.cancel(self.act, self.booking.pk, decision=decision)

    @event()
    def miss(self):
        """The customer does not come."""
        self.now = START + HOUR
        attendance.mark_no_show(self.act, self.booking.pk)

    @event()
    def refuse_refunds(self):
        self._change_gateway("captured", "voided")

    @event()
    def allow_refunds(self):
        self._change_gateway("voided", "captured")

    def _change_gateway(self, old, new):
        # The sandbox refunds no voided payment.
        keys = self.payments.values("key")
        SandboxPayment.objects.filter(key__in=keys, state=old).update(state=new)

    @event(minutes=30)
    def refund_in_dashboard(self, amount, reference="re_1"):
        reported = GatewayRefund(reference, Decimal(str(amount)))
        refunds.record_refunds(self.payments[0], [reported], now=self.now)

    @event(days=2)
    def return_by_bank(self):
        """The bank returns the refund to the gateway."""
        refund = Refund.objects.get()
        reported = GatewayRefund("re_2", refund.amount, key=refund.key, failed=True)
        refunds.record_refunds(refund.payment, [reported], now=self.now)

    @event(minutes=30)
    def retry(self, *, is_executed=True):
        retry = refunds.create_retry_refund(Refund.objects.latest("pk"), now=self.now)
        if is_executed:
            refunds.execute_refund(retry, now=self.now)

    @event(minutes=30)
    def refund_manually(self):
        refunds.mark_refunded_manually(Refund.objects.latest("pk"), "Transfer 5", now=self.now)

    @event(minutes=30)
    def hand_over(self):
        for refund in Refund.objects.due_by_hand():
            refunds.confirm_refund_by_hand(refund, "18", now=self.now)

    @event(minutes=30)
    def receive(self):
        manual_payments.mark_received(Payment.objects.receivable().get(), now=self.now)

    @event(minutes=1)
    def fetch_fees(self):
        for payment in Payment.objects.with_fees_due(self.now):
            fees.fetch_fees(payment, now=self.now)

    @event(days=3)
    def dispute(self, status):
        reported = GatewayDispute(
            reference="d1",
            amount=Decimal(55),
            currency="USD",
            reason="fraudulent",
            status=status,
            opened_at=self.now,
            is_closed=True,
            fee=Decimal(15),
        )
        record_dispute(self.payments[0], reported, now=self.now)

    @event(minutes=30)
    def change(self, *, hours=None, to="", days=0, way="cash", waiver=""):
        """Change the booking; a higher price is paid in this way, or waived."""
        room = self.make_room(to) if to else self.room
        start = START + dt.timedelta(days=days)
        request = ChangeRequest(room.pk, start, start + (hours or self.hours) * HOUR)
        if way == "sandbox":
            act = Act(self.customer, self.now)
            total = differences.preview_change(act, self.booking.pk, request).new_total
            differences.change_booking(
                act,
                self.booking.pk,
                request,
                charging.SAVED_CARD_OF_ABSENT,
                expected_total=total,
            )
            return
        taken = None if waiver else TakenPayment(way, "19")
        amendments.amend(self.act, self.booking.pk, request, taken=taken, waiver=waiver)

    @event(minutes=30)
    def approve(self):
        approval.approve(self.act, self.booking.pk)

    @event(minutes=30)
    def decline(self):
        approval.decline(self.act, self.booking.pk)


def describe(reservation_id: int) -> list[str]:
    """The lines of a reservation as docs/ledger.md shows them."""
    home = LedgerLine.objects.filter(reservation=reservation_id).order_by("pk")[0].center_id
    return [_describe_line(line, home) for line in _get_lines(reservation_id)]


def _get_lines(reservation_id):
    rows = LedgerLine.objects.filter(reservation=reservation_id).select_related("center")
    return rows.order_by("at", "pk")


def _describe_line(line, home):
    words = [f"{line.at:%d %b %H:%M}", f"{line.get_kind_display():<22}"]
    words.append(f"[{line.meeting_day:%d %b}]" if line.meeting_day else " " * 8)
    if line.center_id != home:
        words.append(f"@{line.center.name}")
    amounts = [
        f"{account.label} {from_hundredths(amount):+.2f}" for account, amount in line.amounts
    ]
    return "    " + " ".join([*words, "; ".join(amounts)])


# --- The examples of docs/ledger.md --------------------------------------------------------------

SCENES: dict[str, Callable[[], Scene]] = {
    "Paid by card, and the fee of the gateway": lambda: Scene().book().fetch_fees(),
    "The price is reduced after the payment": lambda: Scene().book().adjust(-10),
    "The prices contain the tax; an hour more is waived, and the price reduced by 5.50": lambda: (
        Scene(is_gross=True).book().change(hours=3, waiver="Leak").adjust("-5.50")
    ),
    "The gateway refuses the refund, and staff return the money by bank transfer": lambda: (
        Scene().book().refuse_refunds().adjust(-20).refund_manually()
    ),
    "Cancelled for free; the gateway refuses the refund, and a retry succeeds": lambda: (
        Scene().book().refuse_refunds().cancel().allow_refunds().retry()
    ),
    "A refund of 22.00 is refused; 10.00 and then 30.00 are refunded in the dashboard": lambda: (
        Scene(hours=3)
        .book()
        .refuse_refunds()
        .adjust(-20)
        .refund_in_dashboard(10)
        .refund_in_dashboard(30, "re_3")
    ),
    "A refused reduction, a refused refund of a no-show, and 20.00 in the dashboard": lambda: (
        Scene(no_show_percent=50).book().refuse_refunds().adjust(-10).miss().refund_in_dashboard(20)
    ),
    "Moved to another center, and cancelled with a refund of 20.00": lambda: (
        Scene().book().change(to="Boulder", days=1).cancel(refund=20)
    ),
    "On account, reduced, received, reduced again, and returned": lambda: (
        Scene().book("account").adjust(-10).receive().adjust(-10).hand_over()
    ),
    "On account, cancelled for free": lambda: Scene().book("account").cancel(),
    "On account, cancelled with the whole price as fee, and received": lambda: (
        Scene().book("account").cancel(refund=0).receive()
    ),
    "Cancelled, and 33.33 of 55.00 are refunded": lambda: Scene().book().cancel(refund="33.33"),
    "A dispute is lost, and then won": lambda: Scene().book().dispute("lost").dispute("won"),
    "20.05 are refunded in the dashboard, and then the price is reduced by 30.00": lambda: (
        Scene().book().refund_in_dashboard("20.05").adjust(-30)
    ),
    "The bank returns the refund of a price reduction, and a retry succeeds": lambda: (
        Scene().book().adjust(-10).return_by_bank().retry()
    ),
    "The bank returns a goodwill refund, and it is tried again": lambda: (
        Scene().book().refund_in_dashboard("20.05").return_by_bank().retry(is_executed=False)
    ),
    "A request is paid in cash, declined, and the money is returned": lambda: (
        Scene(is_live=False).book("cash").decline().hand_over()
    ),
    "A request is paid in cash, and cancelled": lambda: Scene(is_live=False).book("cash").cancel(),
    "A request on account is approved": lambda: Scene(is_live=False).book("account").approve(),
    "A request by card is approved": lambda: Scene(is_live=False).book().approve(),
    "An adjustment makes it free, and it is cancelled": lambda: Scene().book_for_nothing().cancel(),
    "One included hour; an hour more is paid in cash": lambda: (
        Scene(included_hours=1).book().change(hours=3)
    ),
    "An hour more is waived; then it is shortened, on another day": lambda: (
        Scene().book().change(hours=3, waiver="Our fault").change(hours=2, days=1)
    ),
    "An hour more is paid by card, and 60.00 of 82.50 are refunded at the cancellation": lambda: (
        Scene().book().change(hours=3, way="sandbox").cancel(refund=60)
    ),
    "Refunded manually, and again in the dashboard": lambda: (
        Scene().book().refuse_refunds().cancel().refund_manually().refund_in_dashboard(55)
    ),
    "A tax of 8.81 % is reduced in parts, and 3.33 are refunded in the dashboard": lambda: (
        Scene(tax=Decimal("8.81"), hours=1)
        .book()
        .adjust("-3.33")
        .adjust("-3.33")
        .adjust("-3.33")
        .refund_in_dashboard("3.33")
        .cancel(refund="5.55")
    ),
}


@pytest.mark.time_machine(NOW, tick=False)
@pytest.mark.parametrize("title", SCENES)
def test_example_of_the_page_is_what_its_events_post(title):
    story = SCENES[title]()
    [block] = re.findall(rf"(?m)^{re.escape(title)}:\n((?: +.*\n)+)", PAGE.read_text())
    assert "\n".join(describe(story.booking.pk)) == block.rstrip()
    [(_, _, unposted)] = find_unposted([story.booking.pk], now=story.now)
    assert unposted == {}
    assert not LedgerLine.objects.filter(kind=EventKind.CORRECTED).exists()


def test_each_example_of_the_page_is_tested():
    assert re.findall(r"(?m)^(\S.*):\n    \d\d ", PAGE.read_text()) == [*SCENES]


# --- Guards --------------------------------------------------------------------------------------


@pytest.fixture
def booking():
    return make_booking(start=START)


CHANGES_BY_SQL = [
    "UPDATE payments_ledgerline SET room = room - 1, receivables = receivables + 1 WHERE room < 0",
    "UPDATE payments_ledgerline SET kind = 'changed'",
    "DELETE FROM payments_ledgerline",
    "SET CONSTRAINTS ALL IMMEDIATE; TRUNCATE payments_ledgerline"
    if connection.vendor == "postgresql"
    else "REPLACE INTO payments_ledgerline (id, at, kind, cause, reservation_id, center_id,"
    " currency, is_test, day, bookings) SELECT id, at, kind, cause, reservation_id, center_id,"
    " currency, is_test, day, 0 FROM payments_ledgerline",
]


@pytest.mark.parametrize("statement", CHANGES_BY_SQL)
def test_line_changed_or_deleted_by_sql_is_refused(booking, statement):
    refused = pytest.raises(DatabaseError, match="never changes")
    with refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.parametrize(
    ("amounts", "constraint"),
    [
        ({"gateway": 1}, "ledger_line_adds_up"),
        ({"gateway": 5, "cash": -4}, "ledger_line_adds_up"),
        ({"room": -5, "cash": 5}, "ledger_line_of_a_bill_has_its_meeting"),
    ],
)
def test_line_that_does_not_add_up_is_refused(booking, amounts, constraint):
    line = LedgerLine(
        at=NOW,
        kind=EventKind.PAID,
        reservation_id=booking.pk,
        center=booking.room.center,
        currency="USD",
        day=NOW.date(),
        **amounts,
    )
    with pytest.raises(DatabaseError, match=constraint), transaction.atomic():
        line.save()


def test_event_posts_nothing_if_nothing_has_changed(booking):
    before = LedgerLine.objects.count()
    post(booking.pk, EventKind.RETURNED, now=NOW)
    assert LedgerLine.objects.count() == before


def test_difference_that_an_event_cannot_make_is_posted_as_a_correction(booking, caplog):
    Reservation.objects.filter(pk=booking.pk).update(total_cost=F("total_cost") + 5)
    booking.line_items.filter(type="Room").update(total=F("total") + 5)
    post(booking.pk, EventKind.FEES, now=NOW)
    line = LedgerLine.objects.latest("pk")
    assert (line.kind, line.room, line.receivables) == (EventKind.CORRECTED, -500, 500)
    assert "no event has posted" in caplog.text


def test_booking_of_a_month_that_is_over_counts_where_it_changes(booking):
    late = START + dt.timedelta(days=40)
    act = Act(AdministratorFactory(), late, is_staff=True)
    price_adjustments.adjust_price(act, booking.pk, amount=Decimal(-5), reason="Noise")
    line = LedgerLine.objects.get(kind=EventKind.ADJUSTED)
    line.refresh_from_db()
    assert (line.meeting_day, line.recognized_on) == (START.date(), late.date())


def test_declined_card_posts_nothing():
    draft = make_draft()
    with pytest.raises(Exception, match="declined"):
        pay(draft, "4000000000000002")
    assert not LedgerLine.objects.exists()
