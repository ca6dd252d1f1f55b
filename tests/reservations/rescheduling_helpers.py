"""Helpers for tests of rescheduling, changes and price adjustments."""

from decimal import Decimal

from accounts.act import Act
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment
from reservations.booking import amendments, differences
from reservations.booking.amendments import ChangeRequest
from reservations.booking.charging import SAVED_CARD_OF_ABSENT
from reservations.booking.price_adjustments import adjust_price
from reservations.models import Reservation
from tests.factories_centers import MeetingRoomFactory, RateFactory
from tests.factories_reservations import HOUR, NOW, START, make_payment_method


def make_room_in_same_center(room, **fields):
    """Create another room of the same center."""
    return MeetingRoomFactory(center=room.center, **fields)


def make_room_at_rate(room, hourly):
    """Create another room of the same center with only an hourly rate."""
    rate = RateFactory(center=room.center, hourly=Decimal(hourly), half_day=None, full_day=None)
    return make_room_in_same_center(room, rate=rate)


def reschedule(reservation, by, *, room=None, start=START, hours=3, values=(), now=NOW, **how):
    return amendments.amend(
        Act(by, now, is_staff=True),
        reservation.pk,
        build_request(reservation, room=room, start=start, hours=hours, **dict(values)),
        **how,
    )


def preview_reschedule(reservation, by, *, room=None, start=START, hours=3, **how):
    return amendments.amend.preview(
        Act(by, NOW, is_staff=True),
        reservation.pk,
        build_request(reservation, room=room, start=start, hours=hours),
        **how,
    )


def get_stored_values(reservation):
    row = Reservation.objects.filter(pk=reservation.pk).values().get()
    return row, list(reservation.line_items.order_by("pk").values())


def get_net_payment():
    """Return the captured amount less refunds at the gateway."""
    paid = SandboxPayment.objects.get()
    return paid.amount * bool(paid.captures) - paid.refunded


def build_request(booking, *, room=None, start=START, hours=3, **values):
    room_id = (room or booking.room).pk
    return ChangeRequest(room_id, start, start + hours * HOUR, values)


def change(booking, *, total, method=None, user=None, now=NOW, **request):
    return differences.change_booking(
        Act(user or booking.user, now),
        booking.pk,
        build_request(booking, **request),
        method or make_payment_method(),
        expected_total=Decimal(total),
    )


def charge(booking, clerk, *, total, now=NOW, **request):
    """Staff charge the saved card of a customer who is not there."""
    return differences.change_booking(
        Act(clerk, now, is_staff=True),
        booking.pk,
        build_request(booking, **request),
        SAVED_CARD_OF_ABSENT,
        expected_total=Decimal(total),
    )


def adjust(reservation, by, amount, *, now=NOW, reason="Projector broke", **how):
    """Staff add to the price of a reservation, or take off it."""
    act = Act(by, now, is_staff=True)
    return adjust_price(act, reservation.pk, amount=Decimal(amount), reason=reason, **how)


def get_money():
    """What the sandbox has captured and refunded, in the order of the payments."""
    keys = Payment.objects.order_by("pk").values_list("key", flat=True)
    rows = SandboxPayment.objects.in_bulk(keys, field_name="key")
    paid = [rows[key] for key in keys if key in rows]
    return [(each.amount * bool(each.captures), each.refunded) for each in paid]
