"""A small business in which every kind of row exists, and nothing is wrong.

Everything is made by the domain, as customers, staff and the gateway do it. `ids` has the rows by
the names that the corruptions of test_corruptions.py use.
"""

from decimal import Decimal

from django.db import connection

from accounts.act import Act
from payments import fees, manual_payments, refunds
from payments.gateway_events import record_dispute
from payments.gateways.base import GatewayDispute
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Dispute, Payment
from payments.saved_cards import update_saved_card
from reservations.booking import (
    approval,
    attendance,
    cancellation,
    checkout,
    expiry,
    payment_links,
    price_adjustments,
)
from reservations.booking.amendments import TakenPayment
from reservations.booking.charging import PaymentMethod
from reservations.integrations.events import publish_events
from reservations.models import (
    AllowanceEntry,
    PromoRedemption,
    Reservation,
    WebhookEndpoint,
)
from reservations.models.constraints import NO_OVERLAP, NO_OVERLAP_BEFORE
from tests.factories_centers import PriceListFactory, RateFactory, ServiceFactory, TermsFactory
from tests.factories_people import AdministratorFactory, SavedCardFactory, UserFactory
from tests.factories_reservations import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    PAYMENT_INFO,
    START,
    AllowanceFactory,
    MonthlyAllowanceFactory,
    PartnerFactory,
    PromoCodeFactory,
    make_draft,
    make_room,
    pay,
    update_promo_code,
)
from tests.reservations.receipts.helpers import issue, make_seller
from tests.reservations.rescheduling_helpers import (
    build_request,
    change,
    make_room_in_same_center,
    reschedule,
)

# Friday, when the past meetings are, Thursday, when they were booked, and Sunday.
FRIDAY, THURSDAY, SUNDAY = NOW - 72 * HOUR, NOW - 96 * HOUR, NOW - 24 * HOUR


class WholeBusiness:
    """Centers, customers, and bookings in every state with every kind of money."""

    def __init__(self) -> None:
        self.staff = AdministratorFactory()
        self.ada, self.bob = UserFactory(), UserFactory(credit_limit=Decimal(10_000))
        for user in (self.ada, self.bob):
            update_saved_card(user, PAYMENT_INFO, now=THURSDAY)
        make_seller()
        WebhookEndpoint.objects.create(
            description="Doors", url="https://hooks.example.com/", created_at=THURSDAY
        )
        self.home = self.make_room("Denver")
        self.away = self.make_room("Boulder", turnaround_minutes=30)
        self.slow = self.make_room("Chicago", zone="America/Chicago", is_live_inventory=False)
        self.gross = self.make_room("Gross", is_gross=True)
        self.kind = self.make_room("Kind")
        self.kind.center.terms = TermsFactory(center=self.kind.center, no_show_percent=50)
        self.kind.center.save()
        PriceListFactory(rate=self.home.rate)
        self.coffee = self.make_service("Coffee", needs_quantity=True)
        self.beamer = self.make_service("Projector", needs_duration=True)
        self.rows: dict[str, Reservation] = {}
        self.taken = dict[int, int]()
        self.build_past()
        self.build_bookings()
        self.build_changes()
        self.build_money()
        self.build_open()
        for payment in Payment.objects.with_fees_due(NOW):
            fees.fetch_fees(payment, now=SUNDAY)
        publish_events(now=NOW)

    def make_room(self, name, *, zone="America/Denver", is_gross=False, **fields):
        room = make_room(time_zone_id=zone, **fields)
        center = room.center
        center.name, center.tax_rate, center.prices_include_tax = name, Decimal(10), is_gross
        center.save()
        return room

    def make_service(self, name, **fields):
        rate = RateFactory(center=self.home.center, hourly=5, half_day=None, full_day=None)
        if fields.get("needs_quantity"):
            rate = RateFactory(
                center=self.home.center, is_flat_rate=True, flat_rate=2, hourly=None,
                half_day=None, full_day=None,
            )  # fmt: skip
        return ServiceFactory(center=self.home.center, name=name, rate=rate, **fields)

    def act(self, now=SUNDAY):
        return Act(self.staff, now, is_staff=True)

    def draft(self, name, room=None, user=None, *, at=None, now=SUNDAY, hours=3, **fields):
        """A draft of a time that nothing else has; one after another from Wednesday on."""
        room = room or self.home
        if at is None:
            day = self.taken[room.pk] = self.taken.get(room.pk, -1) + 1
            at = START + day * DAY
        draft = make_draft(user or self.ada, room, start=at, now=now, hours=hours, **fields)
        self.rows[name] = draft
        return draft

    def book(self, name, *args, now=SUNDAY, partner_code="", **fields):
        draft = self.draft(name, *args, now=now, **fields)
        return self.keep(name, pay(draft, now=now, partner_code=partner_code))

    def keep(self, name, reservation):
        self.rows[name] = Reservation.objects.get(pk=reservation.pk)
        return self.rows[name]

    def take(self, name, way, **fields):
        draft = self.draft(name, user=self.bob, **fields)
        taken = checkout.book_draft(
            self.act(), draft.pk, gateway=way, reference="17", shown_total=draft.total_cost
        )
        return self.keep(name, taken)

    def payment(self, name):
        return self.rows[name].payments.latest("pk")

    def refuse(self, name, state="voided"):
        """Let the gateway refuse refunds: the sandbox refunds no voided payment."""
        SandboxPayment.objects.filter(key=self.payment(name).key).update(state=state)

    # --- What there is ----------------------------------------------------------------------------

    def build_past(self):
        past = {"now": THURSDAY, "at": FRIDAY}
        self.book("completed", **past)
        self.book("missed", self.kind, **past)
        self.book("kept", self.away, **past)
        self.draft("expired", self.gross, **past)
        cancellation.cancel(
            self.act(FRIDAY - 2 * HOUR),
            self.rows["kept"].pk,
            decision=cancellation.RefundDecision(Decimal(20), "Kindness"),
        )
        attendance.mark_no_show(self.act(FRIDAY + HOUR), self.rows["missed"].pk)
        assert [*expiry.close_overdue(now=FRIDAY + 5 * HOUR)]

    def build_bookings(self):
        options = [
            {"service_id": self.coffee.pk, "quantity": 3},
            {"service_id": self.beamer.pk, "duration_hours": Decimal(2)},
        ]
        guests = [{"name": "Charles", "email_address": "charles@example.com"}]
        PartnerFactory(code="ACME")
        self.book("plain", services=options, attendees=guests, partner_code="ACME")
        self.book("other", self.away)
        self.book("gross", self.gross)
        AllowanceFactory(user=self.bob, hours=2)
        MonthlyAllowanceFactory(user=self.bob, hours=1)
        PromoCodeFactory(code="TEN")
        discounted = self.draft("discounted", user=self.bob, hours=5)
        update_promo_code(discounted.pk, "TEN", user=self.bob, now=SUNDAY)
        self.keep("discounted", pay(discounted, now=SUNDAY))

    def build_changes(self):
        booking = self.book("longer")
        change(booking, total="99", start=booking.start, hours=4, now=SUNDAY)
        self.keep("longer", booking)
        moved = self.book("moved")
        moved = reschedule(
            moved, self.staff, room=self.gross, start=START + 20 * DAY, now=SUNDAY
        ).reservation
        self.keep("moved", moved)
        adjusted = self.book("adjusted")
        for amount in (-10, -5):
            price_adjustments.adjust_price(
                self.act(), adjusted.pk, amount=Decimal(amount), reason=f"Noise {amount}"
            )
        waived = self.book("waived")
        reschedule(waived, self.staff, start=waived.start, hours=4, waiver="Leak", now=SUNDAY)
        self.keep("waived", waived)
        extra = self.book("extra", self.gross)
        values = {"extras": [{"text": "Dinner", "amount": Decimal(30)}]}
        reschedule(
            extra, self.staff, start=extra.start, values=values,
            taken=TakenPayment("terminal", "19"), now=SUNDAY,
        )  # fmt: skip
        self.keep("extra", extra)
        linked = self.book("linked", self.away)
        payment_links.send_change_link(
            self.act(NOW - HOUR / 2),
            linked.pk,
            build_request(linked, start=linked.start, hours=5),
            expected_total=Decimal("126.50"),
            base_url="https://example.com",
        )

    def build_money(self):
        cancelled = self.book("cancelled")
        issue(cancelled, now=SUNDAY)
        cancellation.cancel(Act(self.ada, SUNDAY + HOUR), cancelled.pk)
        issue(cancelled, now=SUNDAY + 2 * HOUR)
        issue(self.rows["plain"], now=SUNDAY + 3 * HOUR)
        for way in ("cash", "terminal", "account"):
            self.take(way, way)
        received = self.take("received", "account")
        manual_payments.mark_received(received.payments.get(), now=SUNDAY + HOUR)
        by_hand = self.take("by_hand", "cash")
        cancellation.cancel(self.act(SUNDAY + HOUR), by_hand.pk)
        retried = self.book("retried")
        self.refuse("retried")
        cancellation.cancel(self.act(), retried.pk)
        self.refuse("retried", "captured")
        retry = refunds.create_retry_refund(self.payment("retried").refunds.get(), now=SUNDAY)
        refunds.execute_refund(retry, now=SUNDAY)
        outside = self.book("outside")
        self.refuse("outside")
        cancellation.cancel(self.act(), outside.pk)
        refunds.mark_refunded_manually(
            self.payment("outside").refunds.get(), "Transfer 5", now=SUNDAY
        )
        self.refuse("outside", "captured")
        self.book("disputed")
        reported = GatewayDispute(
            reference="d1", amount=Decimal(50), currency="USD", reason="fraudulent", status="lost",
            opened_at=SUNDAY + HOUR, is_closed=True, fee=Decimal(15),
        )  # fmt: skip
        record_dispute(self.payment("disputed"), reported, now=SUNDAY + HOUR)

    def build_open(self):
        self.book("pending", self.slow)
        self.book("declined", self.slow)
        approval.decline(self.act(), self.rows["declined"].pk)
        self.book("approved", self.slow)
        approval.approve(self.act(), self.rows["approved"].pk)
        recently = NOW - 5 * MINUTE
        options = [{"service_id": self.coffee.pk, "quantity": 3}]
        self.draft("draft", services=options, now=recently)
        cyd = UserFactory()
        SavedCardFactory(user=cyd, outcome="requires_action", saved_by_setup=True)
        waiting = self.draft("waiting", user=cyd, now=recently)
        waiting = checkout.check_out(
            Act(cyd, recently), waiting.pk, payment_method=PaymentMethod(use_saved_card=True)
        )
        self.keep("waiting", waiting)

    # --- Names ------------------------------------------------------------------------------------

    def get_ids(self) -> dict[str, object]:
        """The ids of the rows, by the names that corruptions.txt uses."""
        ids: dict[str, object] = {}
        for name, row in self.rows.items():
            ids[name] = row.pk
            if payment := row.payments.order_by("-pk").first():
                ids[f"{name}_payment"] = payment.pk
                stored = payment.key if connection.vendor == "postgresql" else payment.key.hex
                ids[f"{name}_key"] = f"'{stored}'"
                if refund := payment.refunds.order_by("-pk").first():
                    ids[f"{name}_refund"] = refund.pk
        for name in ("home", "away", "kind"):
            room = getattr(self, name)
            ids |= {f"{name}_room": room.pk, f"{name}_center": room.center_id}
            ids[f"{name}_rate"] = room.rate_id
        entries = AllowanceEntry.objects.order_by("allowance__kind")
        [monthly, one_off] = entries
        on_postgres = connection.vendor == "postgresql"
        return {
            **ids,
            "ada": self.ada.pk,
            "bob": self.bob.pk,
            "coffee": self.coffee.pk,
            "spare_service": self.make_service("Spare").pk,
            "spare_room": make_room_in_same_center(self.home).pk,
            "spare_code": PromoCodeFactory(code="SPARE").pk,
            "dispute": Dispute.objects.get().pk,
            "change": self.rows["longer"].changes.get().pk,
            "use": PromoRedemption.objects.get().pk,
            "entry": one_off.pk,
            "allowance": one_off.allowance_id,
            "monthly_entry": monthly.pk,
            "spare_allowance": AllowanceFactory(user=self.bob).pk,
            "receipt": self.rows["plain"].receipts.get().pk,
            "drop_overlap": (
                f"ALTER TABLE reservations_reservation DROP CONSTRAINT {NO_OVERLAP}"
                if on_postgres
                else f"DROP TRIGGER {NO_OVERLAP}_update"
            ),
            "drop_overlap_before": (
                f"ALTER TABLE reservations_reservation DROP CONSTRAINT {NO_OVERLAP_BEFORE}"
                if on_postgres
                else f"DROP TRIGGER {NO_OVERLAP}_insert"
            ),
            "on_ledger": "ON payments_ledgerline" if on_postgres else "",
            "on_receipts": "ON reservations_receipt" if on_postgres else "",
        }
