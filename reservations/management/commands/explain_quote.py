from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from centers import rates
from centers.models import MeetingRoom
from centers.span import Span
from reservations.booking.span import resolve_span
from reservations.management.command_line import (
    add_booking_arguments,
    describe_rate,
    domain_errors_as_command_errors,
    get_room,
    parse_id,
    render_bill,
)
from reservations.models import LineItemType, Reservation
from reservations.notifications import confirmation
from reservations.pricing import bill as billing
from reservations.pricing import services as extras
from roombook import money
from roombook.errors import RateNotConfigured

NAMES = ("room", "start", "end")


class Command(BaseCommand):
    help = (
        "Explain a price: each line, the tiers taken on each day and what the others would have"
        " cost; the list price of a room and a time, or what a reservation shows."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_booking_arguments(parser, required=False)
        parser.add_argument(
            "--reservation", type=parse_id, metavar="ID", help="In place of room and time."
        )

    def handle(
        self,
        *,
        reservation: int | None,
        service: list[dict[str, Any]],
        **options: Any,
    ) -> None:
        excluded = [f"--{name}" for name in NAMES if options[name] is not None]
        excluded += ["--service"] if service else []
        if reservation is not None:
            if excluded:
                raise CommandError(f"--reservation stands alone, without {', '.join(excluded)}.")
            self._explain_reservation(reservation)
            return
        missing = [f"--{name}" for name in NAMES if options[name] is None]
        if missing:
            raise CommandError(f"Give {', '.join(missing)}, or --reservation.")
        room = get_room(options["room"])
        with domain_errors_as_command_errors():
            span = resolve_span(room.center, options["start"], options["end"])
            selected = extras.select_services(room.center, service)
            quote = billing.quote_list_price(room, span, selected)
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
        try:
            priced = rates.price_room(room.rate, reservation.span, room.center.zone)
        except RateNotConfigured as error:
            self._print(f"By today's rates it has no price: {error.message}")
        else:
            self._explain_room(room, priced)
            if priced.total != reservation.room_cost:
                self._print(
                    f"By today's rate the room would be {money.format_amount(priced.total)}; the"
                    f" reservation keeps {money.format_amount(reservation.room_cost)}."
                )
        self._explain_discounts(reservation)
        lines = reservation.line_items.order_by("position")
        self._print(*render_bill(lines, reservation.total_cost))
        if reservation.is_new:
            self._compare_with_today(reservation)

    def _explain_room(self, room: MeetingRoom, priced: rates.RoomPrice) -> None:
        assert room.rate is not None  # Otherwise it would have no price.
        self._print(f"Rate: {describe_rate(room.rate)}")
        if priced.is_flat:
            self._print("A flat rate: the same for any time.")
        for day in priced.days:
            self._print(
                f"  {day.day}, {rates.format_hours(day.billable_hours)} billed: {day.explanation}"
            )

    def _explain_discounts(self, reservation: Reservation) -> None:
        for use in reservation.allowance_uses.select_related("allowance").order_by("pk"):
            share = f"{use.hours} of {rates.format_quantity(reservation.billable_hours)}"
            self._print(
                f"Allowance {use.allowance.description}: {share} billable hours,"
                f" {money.format_amount(-use.discount)} of the room's line."
            )
        if reservation.promo_code is not None:
            base = sum(
                line.total for line in reservation.line_items.all() if line.type in BEFORE_PROMOTION
            )
            self._print(
                f"Promo code {reservation.promo_code}: off room, set-up and services less"
                f" allowances, {money.format_amount(base)}."
            )

    def _compare_with_today(self, reservation: Reservation) -> None:
        """Print the price that the draft would have after its next change, which reprices it."""
        try:
            quote = billing.quote_reservation(
                reservation, billing.get_applicable_allowances(reservation)
            )
        except RateNotConfigured as error:
            self._print(f"If it were repriced, it would be refused: {error.message}")
            return
        if quote.total != reservation.total_cost:
            self._print(f"If it were repriced, it would cost {money.format_amount(quote.total)}:")
            self._print(*render_bill(quote.lines, quote.total))

    def _print(self, *lines: str) -> None:
        for line in lines:
            self.stdout.write(line)


BEFORE_PROMOTION = {
    LineItemType.ROOM,
    LineItemType.SETUP_FEE,
    LineItemType.SERVICE,
    LineItemType.ALLOWANCE,
}


def _describe_slot(room: MeetingRoom, span: Span) -> str:
    return confirmation.describe_booking(Reservation(room=room, start=span.start, end=span.end))
