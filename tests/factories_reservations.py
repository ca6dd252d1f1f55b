"""Factories of reservations, promo codes and allowances.

`make_draft`, `make_booking` and `make_pending_booking` call the domain as the API does.
`ReservationFactory` creates a bare row without it.
"""

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import factory
from factory.django import DjangoModelFactory

from accounts.act import Act
from accounts.models import User
from centers.models import MeetingRoom
from payments.gateways.manual import MANUAL_GATEWAYS
from payments.ledger.accounts import EventKind
from payments.ledger.posting import post
from payments.models import Payment, PaymentState
from reservations import models, records
from reservations.booking import charging, checkout, drafts
from reservations.models.status import BOOKED_STATUSES, HOLDING_STATUSES, Status
from reservations.pricing.terms import RefundTerms, Step
from tests.factories_centers import MeetingRoomFactory, make_center_with_room
from tests.factories_people import AdministratorFactory, UserFactory

# A Monday, 9 in the morning in Denver.
NOW = dt.datetime(2027, 3, 1, 16, tzinfo=dt.UTC)
# The Wednesday after, 9 in the morning in Denver.
START = dt.datetime(2027, 3, 3, 16, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)
# Those of the settings.
DEFAULT_TERMS = RefundTerms("", (Step(24, 100),), 15, returns_benefits=True).to_json()
MINUTE = dt.timedelta(minutes=1)

VALID_NUMBER = "4242424242424242"
DECLINED_NUMBER = "4000000000000002"

# A card as clients send it, and as the domain receives it.
CARD = {
    "FirstName": "Ada",
    "LastName": "Lovelace",
    "CreditCardNumber": VALID_NUMBER,
    "SecurityCode": "123",
    "ExpirationDate": "2031-02-10T00:00:00Z",
}
PAYMENT_INFO = {
    "first_name": "Ada",
    "last_name": "Lovelace",
    "credit_card_number": VALID_NUMBER,
    "expiration_date": dt.datetime(2031, 2, 10, tzinfo=dt.UTC),
}


def make_payment_method(number: str = VALID_NUMBER, **options: Any) -> charging.PaymentMethod:
    """Payment with a card in the request."""
    return charging.PaymentMethod(card={**PAYMENT_INFO, "credit_card_number": number}, **options)


def make_room(*, time_zone_id: str = "America/Denver", **fields: Any) -> MeetingRoom:
    """A room for eight at 25 an hour in a center that is open 8 to 18 every day."""
    room = make_center_with_room(name="Glenarm", time_zone_id=time_zone_id).rooms.get()
    for name, value in fields.items():
        setattr(room, name, value)
    room.save()
    return room


def make_draft(
    user: User | None = None,
    room: MeetingRoom | None = None,
    *,
    start: dt.datetime = START,
    hours: float = 3,
    now: dt.datetime = NOW,
    created_by: User | None = None,
    **fields: Any,
) -> models.Reservation:
    """A draft with a price that holds its room: status New."""
    user = user or UserFactory()
    return drafts.create_draft(
        Act(created_by or user, now, is_staff=created_by is not None),
        user,
        room_id=(room or make_room()).pk,
        start=start,
        end=start + hours * HOUR,
        **fields,
    )


def make_booking(
    user: User | None = None,
    room: MeetingRoom | None = None,
    *,
    now: dt.datetime = NOW,
    **fields: Any,
) -> models.Reservation:
    """A reservation paid by card: Confirmed, or Pending if the center must approve it."""
    return pay(make_draft(user, room, now=now, **fields), now=now)


def pay(
    reservation: models.Reservation,
    number: str = VALID_NUMBER,
    *,
    partner_code: str = "",
    now: dt.datetime = NOW,
    **options: Any,
) -> models.Reservation:
    """Check out with a card, as the customer of the reservation does."""
    return checkout.check_out(
        Act(reservation.user, now),
        reservation.pk,
        payment_method=make_payment_method(number, **options),
        partner_code=partner_code,
    )


def show_price(reservation: models.Reservation) -> models.Reservation:
    """Show the customer a price that has changed, as Get reservation does."""
    records.get_record(reservation.pk, user=reservation.user)
    reservation.refresh_from_db(fields=["shown_total"])
    return reservation


def update_promo_code(
    reservation_id: int, code: str, *, user: User, now: dt.datetime
) -> models.Reservation:
    """Apply a promo code and show the new price, as the operation does."""
    return show_price(drafts.apply_promo_code(Act(user, now), reservation_id, code))


def update_allowances(
    reservation_id: int, allowance_ids: Sequence[int], *, user: User, now: dt.datetime
) -> models.Reservation:
    """Select allowances and show the new price, as the operation does."""
    return show_price(drafts.select_allowances(Act(user, now), reservation_id, allowance_ids))


def make_pending_booking(
    user: User | None = None, room: MeetingRoom | None = None, **fields: Any
) -> Any:
    """A Pending reservation: authorized, and not yet approved by the center."""
    return make_booking(user, room or make_room(is_live_inventory=False), **fields)


def get_current_status(reservation: models.Reservation) -> str:
    """The status in the database."""
    reservation.refresh_from_db()
    return reservation.status


class ReservationFactory(DjangoModelFactory):
    """A bare row: three hours in a room, held as its status requires, without lines or price."""

    class Meta:
        model = models.Reservation

    user = factory.SubFactory(UserFactory)
    room = factory.SubFactory(MeetingRoomFactory)
    start = START
    end = factory.LazyAttribute(lambda row: row.start + 3 * HOUR)
    status = Status.CONFIRMED
    hold_until = None
    holds_slot = factory.LazyAttribute(
        lambda row: row.status in HOLDING_STATUSES or bool(row.hold_until)
    )
    currency = "USD"
    cancellation_terms = DEFAULT_TERMS
    created_at = NOW
    booked_at = factory.LazyAttribute(
        lambda row: row.created_at if row.status in BOOKED_STATUSES else None
    )
    cancelled_at = factory.LazyAttribute(
        lambda row: row.created_at if row.status == Status.CANCELLED else None
    )


class PaymentFactory(DjangoModelFactory):
    """A payment of the price, captured unless another state is given. The sandbox has no row."""

    class Meta:
        model = Payment
        exclude = ("at",)

    at = NOW
    reservation = factory.SubFactory(ReservationFactory)
    cash_center = factory.SelfAttribute("reservation.room.center")
    gateway = "sandbox"
    amount = factory.SelfAttribute("reservation.total_cost")
    currency = "USD"
    state = PaymentState.CAPTURED
    lease_until = factory.SelfAttribute("at")
    created_at = factory.SelfAttribute("at")
    counts = factory.LazyAttribute(
        lambda row: (
            row.state in {"authorized", "captured", "refunded"}
            and row.purpose == "booking"
            and row.reservation.status not in {"New", "Processing", "Declined", "Expired"}
        )
    )
    purpose = "booking"
    authorized_at = factory.LazyAttribute(
        lambda row: row.at if row.captured_at or row.state == PaymentState.AUTHORIZED else None
    )
    captured_at = factory.LazyAttribute(
        lambda row: row.at if row.state in {"captured", "refunded"} else None
    )
    closed_at = factory.LazyAttribute(
        lambda row: row.at if row.state in {"declined", "voided", "refunded"} else None
    )
    reservation_uid = factory.SelfAttribute("reservation.uid")
    taken_by = factory.LazyAttribute(
        lambda row: AdministratorFactory() if row.gateway in MANUAL_GATEWAYS else None
    )
    received_at = factory.LazyAttribute(
        lambda row: row.at if row.gateway in {"cash", "terminal"} else None
    )


def post_sale(reservation: models.Reservation, *, now: dt.datetime) -> models.Reservation:
    """Put the whole price of a reservation of the factory on its bill, and post that."""
    reservation.line_items.create(
        type="Room", description="Room", amount="", total=reservation.total_cost, position=0
    )
    post(reservation.pk, EventKind.BOOKED, now=min(now, reservation.start))
    return reservation


class AllowanceFactory(DjangoModelFactory):
    """Ten hours, once, applied automatically."""

    class Meta:
        model = models.Allowance
        skip_postgeneration_save = True

    user = factory.SubFactory(UserFactory)
    description = factory.Sequence(lambda n: f"Plan {n}")
    hours = 10


class MonthlyAllowanceFactory(AllowanceFactory):
    kind = models.Allowance.Kind.MONTHLY


class PromoCodeFactory(DjangoModelFactory):
    """Ten percent off every booking of every customer, without end."""

    class Meta:
        model = models.PromoCode
        skip_postgeneration_save = True

    code = factory.Sequence(lambda n: f"TEN{n}")
    percent = Decimal(10)


class PartnerFactory(DjangoModelFactory):
    class Meta:
        model = models.Partner

    code = factory.Sequence(lambda n: f"PARTNER{n}")
    name = factory.Sequence(lambda n: f"Partner {n}")
