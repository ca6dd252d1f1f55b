import datetime as dt
from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts.models import User
from centers.models import MeetingRoom
from centers.requested_span import resolve_span
from reservations import availability
from reservations.booking import drafts
from reservations.management.command_line import (
    add_booking_arguments,
    domain_errors_as_command_errors,
    get_account,
    get_room,
    parse_id,
    render_bill,
    resolve_times,
)
from reservations.notifications import confirmation
from reservations.pricing.services import ServiceInput
from roombook.errors import SlotUnavailable


class Command(BaseCommand):
    help = (
        "Create a draft for a customer, by the same rules as the API; it holds its room for 15"
        " minutes, or for 24 hours if --staff is given."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", required=True, metavar="EMAIL", help="The customer.")
        add_booking_arguments(parser, is_room_required=True)
        parser.add_argument(
            "--attendees", type=parse_id, metavar="N", help="Number of attendees. Default: 1."
        )
        parser.add_argument("--staff", metavar="EMAIL", help="The member of staff who creates it.")

    def handle(
        self,
        *,
        user: str,
        room: int,
        start: dt.datetime | None,
        end: dt.datetime | None,
        service: list[ServiceInput],
        attendees: int | None,
        staff: str | None,
        **options: object,
    ) -> None:
        customer = get_account(user)
        created_by = self._get_staff(staff)
        selected, now = get_room(room), timezone.now()
        start, end = resolve_times(selected, start, end, user=customer, now=now)
        with domain_errors_as_command_errors():
            try:
                reservation = drafts.create_draft(
                    customer,
                    room_id=room,
                    start=start,
                    end=end,
                    service_options=service,
                    number_of_attendees=attendees,
                    created_by=created_by,
                    now=now,
                )
            except SlotUnavailable as error:
                raise self._add_reasons(error, selected, start, end, customer, now) from error
        hold = reservation.hold_until
        assert hold is not None  # A new draft holds its room.
        self.stdout.write(f"Reservation {reservation.pk} for {customer.email}: ", ending="")
        self.stdout.write(confirmation.describe_booking(reservation))
        self.stdout.write(
            f"It is {reservation.status} and holds the room until"
            f" {hold.astimezone(selected.center.zone):%Y-%m-%d %H:%M} (the center's time)."
        )
        lines = reservation.line_items.order_by("position")
        self.stdout.write("\n".join(render_bill(lines, reservation.total_cost)))

    def _get_staff(self, email: str | None) -> User | None:
        if email is None:
            return None
        staff = get_account(email)
        if not staff.is_staff:
            raise CommandError(f"{staff.email} is not staff.")
        return staff

    def _add_reasons(
        self,
        error: SlotUnavailable,
        room: MeetingRoom,
        start: dt.datetime,
        end: dt.datetime,
        customer: User,
        now: dt.datetime,
    ) -> SlotUnavailable:
        """Return the error with every reason and its details for staff."""
        span = resolve_span(room.center, start, end)
        result = availability.evaluate(room, span, now=now, for_user=customer)
        details = tuple(f"{each.code}: {each.detail}" for each in result.reasons)
        return SlotUnavailable(error.message, details=details)
