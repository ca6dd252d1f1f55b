import datetime as dt
from argparse import ArgumentParser
from decimal import Decimal

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from centers import rates
from centers.models import MeetingRoom
from centers.requested_span import resolve_span
from centers.span import Span
from reservations.management.command_line import (
    add_booking_arguments,
    domain_errors_as_command_errors,
    get_room,
    parse_id,
    render_bill,
    resolve_times,
)
from reservations.models import LineItem, LineItemType, Reservation
from reservations.notifications import confirmation
from reservations.pricing import bill, services
from reservations.pricing.quote import calculate_quote
from reservations.pricing.services import ServiceInput
from roombook import money
from roombook.errors import RateNotConfigured

# The types of lines off which a promo code takes a percentage.
BEFORE_PROMOTION = {
    LineItemType.ROOM,
    LineItemType.SETUP_FEE,
    LineItemType.SERVICE,
    LineItemType.ALLOWANCE,
}


class Command(BaseCommand):
    help = (
        "Explain a price: each line, the tiers taken on each day and what the others would have"
        " cost; the list price of a room and a time, or what a reservation shows."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_booking_arguments(parser, is_room_required=False)
        parser.add_argument(
            "--reservation", type=parse_id, metavar="ID", help="In place of room and time."
        )

    def handle(
        self,
        *,
        reservation: int | None,
        room: int | None,
        start: dt.datetime | None,
        end: dt.datetime | None,
        service: list[ServiceInput],
        **options: object,
    ) -> None:
        values = {"--room": room, "--start": start, "--end": end, "--service": service or None}
        if reservation is not None:
            if excluded := [name for name, value in values.items() if value is not None]:
                raise CommandError(f"--reservation stands alone, without {', '.join(excluded)}.")
            self._explain_reservation(reservation)
        elif room is not None:
            selected = get_room(room)
            times = resolve_times(selected, start, end, user=None, now=timezone.now())
            self._explain_list_price(selected, *times, service)
        else:
            raise CommandError("Give --room or --reservation.")

    def _explain_list_price(
        self, room: MeetingRoom, start: dt.datetime, end: dt.datetime, service: list[ServiceInput]
    ) -> None:
        with domain_errors_as_command_errors():
            span = resolve_span(room.center, start, end)
            selected = services.select_services(room.center, service, span)
            quote = calculate_quote(room, span, services=selected)
        self._print(f"List price of {_describe_slot(room, span)}")
        self._explain_room(room, quote.room)
        self._print(*render_bill(quote.lines, quote.total))

    def _explain_reservation(self, number: int) -> None:
        rows = Reservation.objects.select_related("room__center", "room__rate", "promo_code")
        reservation = rows.filter(pk=number).first()
        if reservation is None:
            raise CommandError(f"There is no reservation {number}.")
        room = reservation.room
        self._print(
            f"Reservation {number} ({reservation.status}) of {reservation.user}:"
            f" {_describe_slot(room, reservation.span)}"
        )
        lines = list(reservation.line_items.order_by("position"))
        room_cost = _sum_lines(lines, {LineItemType.ROOM})
        try:
            priced = rates.price_room(room.rate, reservation.span, room.center.zone)
        except RateNotConfigured as error:
            self._print(f"By today's rates it has no price: {error.message}")
        else:
            self._explain_room(room, priced)
            if priced.total != room_cost:
                self._print(
                    f"By today's rate the room would be {money.format_amount(priced.total)}; the"
                    f" reservation keeps {money.format_amount(room_cost)}."
                )
        self._explain_discounts(reservation, lines)
        self._print(*render_bill(lines, reservation.total_cost))
        if reservation.is_new:
            self._compare_with_today(reservation)

    def _explain_room(self, room: MeetingRoom, priced: rates.RoomPrice) -> None:
        assert room.rate is not None  # Otherwise it would have no price.
        self._print(f"Rate: {rates.describe_rate(room.rate)}")
        if priced.is_flat:
            self._print("A flat rate: the same for any time.")
        elif room.rate.bill_in_blocks:
            self._print("Each started hour is billed.")
        else:
            self._print("Each started quarter of an hour is billed.")
        for day in priced.days:
            self._print(
                f"  {day.day}, {rates.format_hours(day.billable_hours)} billed: {day.explanation}"
            )

    def _explain_discounts(self, reservation: Reservation, lines: list[LineItem]) -> None:
        for use in reservation.allowance_uses.select_related("allowance").order_by("pk"):
            share = f"{use.hours} of {rates.format_quantity(reservation.billable_hours)}"
            self._print(
                f"Allowance {use.allowance.description}: {share} billable hours,"
                f" {money.format_amount(-use.discount)} of the room's line."
            )
        if reservation.promo_code is not None:
            base = _sum_lines(lines, BEFORE_PROMOTION)
            self._print(
                f"Promo code {reservation.promo_code}: off room, set-up and services less"
                f" allowances, {money.format_amount(base)}."
            )

    def _compare_with_today(self, reservation: Reservation) -> None:
        """Print the price that the draft would have after its next change, which reprices it."""
        try:
            available = bill.get_applicable_allowances(reservation)
            quote = bill.quote_reservation(reservation, available)
        except RateNotConfigured as error:
            self._print(f"If it were repriced, it would be refused: {error.message}")
            return
        if quote.total != reservation.total_cost:
            self._print(f"If it were repriced, it would cost {money.format_amount(quote.total)}:")
            self._print(*render_bill(quote.lines, quote.total))

    def _print(self, *lines: str) -> None:
        for line in lines:
            self.stdout.write(line)


def _sum_lines(lines: list[LineItem], types: set[LineItemType]) -> Decimal:
    return sum((line.total for line in lines if line.type in types), money.ZERO)


def _describe_slot(room: MeetingRoom, span: Span) -> str:
    return confirmation.describe_booking(Reservation(room=room, start=span.start, end=span.end))
