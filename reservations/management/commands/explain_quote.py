from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from centers import rates
from centers.models import MeetingRoom
from centers.span import Span
from reservations.management.command_line import (
    add_booking_arguments,
    domain_errors_as_command_errors,
    read_booking,
    render_bill,
)
from reservations.models import Reservation
from reservations.pricing import services
from reservations.pricing.quote import calculate_quote


class Command(BaseCommand):
    help = "Explain the list price of a room and a time by day, or what a reservation costs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_booking_arguments(parser)
        parser.add_argument("--reservation", type=int, metavar="ID", help="In place of room, time.")

    def handle(self, **options: Any) -> None:
        with domain_errors_as_command_errors():
            if number := options["reservation"]:
                booked = Reservation.objects.get(pk=number)
                self._explain_room(booked.room, booked.span)
                lines = booked.line_items.order_by("position")
                self.stdout.write(render_bill(lines, booked.total_cost))
                return
            room, span = read_booking(options, now=timezone.now())
            chosen = services.select_services(room.center, options["service"], span)
            quote = calculate_quote(room, span, services=chosen)
            self._explain_room(room, span)
            self.stdout.write(render_bill(quote.lines, quote.total))

    def _explain_room(self, room: MeetingRoom, span: Span) -> None:
        """Print the rate of today, and the tiers taken on each day with what others would cost."""
        priced = rates.price_room(room.rate, span, room.center.zone)
        assert room.rate is not None  # Otherwise it has no price.
        self.stdout.write(f"{room}: {rates.describe_rate(room.rate)}")
        for day in priced.days:
            hours = rates.format_hours(day.billable_hours)
            self.stdout.write(f"  {day.day}, {hours} billed: {day.explanation}")
