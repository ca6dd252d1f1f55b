"""The operations that tell when a room can be booked, and at what price."""

import datetime as dt

from django.utils import timezone

from accounts.models import User
from centers.requested_span import MAX_SPAN, resolve_period, resolve_span
from centers.rooms import get_room
from reservations import alternatives, availability, free_times
from reservations.free_times import MAX_ROOMS
from reservations.models.booking_fields import ServiceInput
from reservations.pricing import services
from reservations.pricing.quote import calculate_quote
from reservations.serializers import (
    END_DATE,
    EXAMPLE_BOOKING,
    EXAMPLE_SPAN,
    SERVICE_OPTIONS,
    START_DATE,
    AlternativeInfo,
    BookingInput,
    RoomFreeTimesInfo,
    ServiceOption,
)
from roombook.api.fields import (
    BooleanField,
    CenterDateTimeField,
    CenterDayOrTimeField,
    DecimalField,
    IdField,
    IntegerField,
    ListField,
)
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer
from roombook.errors import NotFound, RateNotConfigured


class CheckRoomAvailability(Operation):
    """Tell whether a room can be booked for a time span.

    Opening hours, closures, other bookings and the limits of the room are considered, but not
    whether the room has a price. Drafts of the account itself are no obstacle.
    """

    errors = (NotFound,)
    example = {"RoomId": 2, **EXAMPLE_SPAN}

    class Input(ContractSerializer):
        CenterId = IdField(help_text="The center of the room; another one is `NotFound`.")
        RoomId = IdField(required=True, help_text="The room.")
        StartDate = CenterDateTimeField(required=True, help_text=START_DATE)
        EndDate = CenterDateTimeField(required=True, help_text=END_DATE)

    class Output(ContractSerializer):
        IsAvailable = BooleanField(help_text="Whether the room can be booked at that time.")

    def perform(
        self,
        user: User,
        *,
        room_id: int,
        start_date: dt.datetime,
        end_date: dt.datetime,
        center_id: int | None = None,
    ) -> dict[str, object]:
        room = get_room(room_id, center_id=center_id, related=["center"])
        span = resolve_span(room.center, start_date, end_date)
        answer = availability.evaluate(room, span, now=timezone.now(), for_user=user)
        return {"is_available": answer.is_available}


class ReservationCost(Operation):
    """Return the list price of a room with services for a time span, including tax.

    Availability, promo codes and included hours are not considered.
    """

    errors = (NotFound, RateNotConfigured)
    example = EXAMPLE_BOOKING
    Input = BookingInput

    class Output(ContractSerializer):
        Total = DecimalField(help_text="The price in the currency of the deployment, with tax.")

    def perform(
        self,
        user: User,
        *,
        meeting_room_id: int,
        start_date: dt.datetime,
        end_date: dt.datetime,
        service_options: list[ServiceInput] | None = None,
    ) -> dict[str, object]:
        room = get_room(meeting_room_id)
        span = resolve_span(room.center, start_date, end_date)
        selected = services.select_services(room.center, service_options or [], span)
        return {"total": calculate_quote(room, span, services=selected).total}


class ListFreeTimes(Operation):
    """List the times within which rooms can be booked.

    A booking on the time slots of its room and of a length that the room allows is available
    exactly if it lies within one of them. Either CenterId or RoomIds is required.
    """

    csv_rows_field = "Rooms.FreeTimes"
    errors = (NotFound,)
    example = {
        "RoomIds": [1, 2],
        "From": EXAMPLE_SPAN["StartDate"],
        "To": EXAMPLE_SPAN["EndDate"],
        "DurationMinutes": 60,
    }

    class Input(ContractSerializer):
        CenterId = IdField(help_text="All rooms of this center; either this or RoomIds.")
        RoomIds = ListField(
            IdField(), max_length=MAX_ROOMS, help_text=f"1 to {MAX_ROOMS} rooms, each once."
        )
        From = CenterDayOrTimeField(
            required=True,
            help_text="Without an offset, each center's local time; a date alone is its midnight.",
        )
        To = CenterDayOrTimeField(required=True, help_text="The same; at most 31 days after From.")
        DurationMinutes = IntegerField(
            min_value=1,
            max_value=MAX_SPAN // dt.timedelta(minutes=1),
            help_text="Leaves out times that are shorter than these minutes.",
        )

    class Output(ContractSerializer):
        Rooms = RoomFreeTimesInfo(many=True, help_text="In the order of RoomIds.")

    def perform(
        self,
        user: User,
        *,
        to: dt.datetime,
        center_id: int | None = None,
        room_ids: list[int] | None = None,
        duration_minutes: int | None = None,
        **fields: dt.datetime,
    ) -> dict[str, object]:
        rooms = free_times.load_rooms(room_ids=room_ids, center_id=center_id)
        found = free_times.list_free_times(
            rooms,
            # `from` is a keyword of Python, so it cannot be a parameter.
            lambda zone: resolve_period(zone, fields["from"], to),
            duration=dt.timedelta(minutes=duration_minutes) if duration_minutes else None,
            user=user,
            now=timezone.now(),
        )
        return {"rooms": found}


class FindAlternatives(Operation):
    """List what can be booked instead of a room at a time.

    First other rooms of the center, then the same room at another time within 24 hours, then rooms
    of centers within 5 miles. Each can be booked now, and has a price.
    """

    csv_rows_field = "Alternatives"
    errors = (NotFound,)
    example = {"RoomId": 2, **EXAMPLE_SPAN}

    class Input(ContractSerializer):
        RoomId = IdField(required=True, help_text="The room that is not available.")
        StartDate = CenterDateTimeField(required=True, help_text=START_DATE)
        EndDate = CenterDateTimeField(required=True, help_text=END_DATE)
        ServiceOptions = ServiceOption(many=True, help_text=SERVICE_OPTIONS)
        Limit = IntegerField(min_value=1, max_value=10, help_text="How many to list, 1 to 10.")

    class Output(ContractSerializer):
        Alternatives = AlternativeInfo(many=True, help_text="The best first.")

    def perform(
        self,
        user: User,
        *,
        room_id: int,
        start_date: dt.datetime,
        end_date: dt.datetime,
        service_options: list[ServiceInput] | None = None,
        limit: int = 5,
    ) -> dict[str, object]:
        room = get_room(room_id)
        span = resolve_span(room.center, start_date, end_date)
        selected = services.select_services(room.center, service_options or [], span)
        search = alternatives.AlternativeSearch(room, span, selected, user, timezone.now())
        return {"alternatives": alternatives.find_alternatives(search, limit=limit)}
