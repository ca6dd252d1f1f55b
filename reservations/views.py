"""The operations on reservations."""

import datetime as dt
from collections.abc import Sequence

from django.utils import timezone

from accounts.models import User
from centers.requested_span import MAX_SPAN, resolve_period, resolve_span
from centers.rooms import get_room
from payments.cards import CardFields
from payments.serializers import AccountPaymentInfo
from reservations import alternatives, availability, free_times, records
from reservations.booking import cancellation, checkout, drafts
from reservations.booking.drafts import AttendeeInput
from reservations.free_times import MAX_ROOMS
from reservations.listing import MAX_PAGE_SIZE, ReservationPage, list_page
from reservations.models.status import Status
from reservations.notifications import confirmation
from reservations.pricing import services
from reservations.pricing.quote import calculate_quote
from reservations.pricing.services import ServiceInput
from reservations.serializers import (
    AllowanceUsageInfo,
    AlternativeInfo,
    AttendeeInfo,
    ReservationInfo,
    RoomFreeTimesInfo,
    ServiceOption,
)
from roombook.api.fields import (
    BooleanField,
    CenterDateTimeField,
    CenterDayOrTimeField,
    ChoiceField,
    DateTimeField,
    DecimalField,
    IdField,
    IntegerField,
    ListField,
    TextField,
)
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer
from roombook.errors import InvalidRequest


class GetReservation(Operation):
    """Return one of the account's reservations."""

    class Input(ContractSerializer):
        Id = IdField(required=True)

    class Output(ContractSerializer):
        Reservation = ReservationInfo()

    def perform(self, user: User, *, id: int) -> dict[str, object]:  # noqa: A002 (the contract's Id)
        return {"reservation": records.get_record(id, user=user)}


class CheckRoomAvailability(Operation):
    """Tell whether a room can be booked for a time span."""

    class Input(ContractSerializer):
        CenterId = IdField()
        RoomId = IdField(required=True)
        StartDate = CenterDateTimeField(required=True)
        EndDate = CenterDateTimeField(required=True)

    class Output(ContractSerializer):
        IsAvailable = BooleanField()

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


class BookingInput(ContractSerializer):
    """A room, a time span and services."""

    MeetingRoomId = IdField(required=True)
    StartDate = CenterDateTimeField(required=True)
    EndDate = CenterDateTimeField(required=True)
    ServiceOptions = ServiceOption(many=True)


class ReservationCost(Operation):
    """Return the list price of a room with services for a time span, including tax."""

    Input = BookingInput

    class Output(ContractSerializer):
        Total = DecimalField()

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


class UpdatePromoCode(Operation):
    """Set, replace or remove the promo code of a draft."""

    class Input(ContractSerializer):
        ReservationId = IdField(required=True)
        PromoCode = TextField(max_length=50)

    class Output(ContractSerializer):
        UpdatedReservation = ReservationInfo()

    def perform(
        self, user: User, *, reservation_id: int, promo_code: str = ""
    ) -> dict[str, object]:
        drafts.apply_promo_code(reservation_id, promo_code, user=user, now=timezone.now())
        return {"updated_reservation": records.get_record(reservation_id, user=user)}


class GetAllowances(Operation):
    """List the allowances that a reservation uses or could use."""

    csv_rows_field = "Allowances"

    class Input(ContractSerializer):
        ReservationId = IdField(required=True)

    class Output(ContractSerializer):
        Allowances = AllowanceUsageInfo(many=True)

    def perform(self, user: User, *, reservation_id: int) -> dict[str, object]:
        record = records.get_record(reservation_id, user=user, shows_price=False)
        return {"allowances": record.all_allowances}


class Checkout(Operation):
    """Pay for a draft by card and book it. Safe to repeat."""

    class Input(ContractSerializer):
        ReservationId = IdField(required=True)
        UseSavedPaymentInfo = BooleanField()
        PaymentInfo = AccountPaymentInfo()
        SavePaymentInfo = BooleanField()
        TestMode = BooleanField()
        PartnerCode = TextField(max_length=50)

    class Output(ContractSerializer):
        ConfirmationMessage = TextField()
        IsLive = BooleanField()
        Status = TextField(contract_type="ReservationStatuses")

    def perform(
        self,
        user: User,
        *,
        reservation_id: int,
        use_saved_payment_info: bool = False,
        payment_info: CardFields | None = None,
        save_payment_info: bool = False,
        test_mode: bool = False,
        partner_code: str = "",
    ) -> dict[str, object]:
        check_out = checkout.dry_run if test_mode else checkout.check_out
        reservation = check_out(
            reservation_id,
            user=user,
            payment_method=checkout.PaymentMethod(
                use_saved_payment_info, payment_info, save_payment_info
            ),
            partner_code=partner_code,
            now=timezone.now(),
        )
        return {
            "confirmation_message": confirmation.get_message(reservation),
            "is_live": reservation.is_live and not test_mode,
            "status": reservation.status,
        }


# --- Extensions of the contract, by the same conventions ------------------------------------------


class CreateReservation(Operation):
    """Create a draft that holds its room for a limited time."""

    accepts_idempotency_key = True

    class Input(BookingInput):
        NumberOfAttendees = IntegerField(min_value=1)
        Attendees = AttendeeInfo(many=True)

    class Output(ContractSerializer):
        Reservation = ReservationInfo()

    def perform(
        self,
        user: User,
        *,
        meeting_room_id: int,
        start_date: dt.datetime,
        end_date: dt.datetime,
        service_options: list[ServiceInput] | None = None,
        number_of_attendees: int | None = None,
        attendees: list[AttendeeInput] | None = None,
    ) -> dict[str, object]:
        reservation = drafts.create_draft(
            user,
            room_id=meeting_room_id,
            start=start_date,
            end=end_date,
            service_options=service_options or [],
            number_of_attendees=number_of_attendees,
            attendees=attendees or [],
            now=timezone.now(),
        )
        return {"reservation": records.get_record(reservation.pk, user=user)}


class ListFreeTimes(Operation):
    """List the times within which rooms can be booked."""

    csv_rows_field = "Rooms.FreeTimes"

    class Input(ContractSerializer):
        CenterId = IdField(help_text="Either this or RoomIds.")
        RoomIds = ListField(IdField(), max_length=MAX_ROOMS)
        From = CenterDayOrTimeField(required=True)
        To = CenterDayOrTimeField(required=True)
        DurationMinutes = IntegerField(min_value=1, max_value=MAX_SPAN // dt.timedelta(minutes=1))

    class Output(ContractSerializer):
        Rooms = RoomFreeTimesInfo(many=True)

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
            lambda center: resolve_period(center, fields["from"], to),
            duration=dt.timedelta(minutes=duration_minutes) if duration_minutes else None,
            user=user,
            now=timezone.now(),
        )
        return {"rooms": found}


class FindAlternatives(Operation):
    """List what can be booked instead of a room at a time."""

    csv_rows_field = "Alternatives"

    class Input(ContractSerializer):
        RoomId = IdField(required=True)
        StartDate = CenterDateTimeField(required=True)
        EndDate = CenterDateTimeField(required=True)
        ServiceOptions = ServiceOption(many=True)
        Limit = IntegerField(min_value=1, max_value=10, help_text="1 to 10; 5 if absent.")

    class Output(ContractSerializer):
        Alternatives = AlternativeInfo(many=True)

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


class CancelReservation(Operation):
    """Cancel a reservation and refund what its policy allows; TestMode only previews that."""

    class Input(ContractSerializer):
        ReservationId = IdField(required=True)
        TestMode = BooleanField()

    class Output(ContractSerializer):
        Message = TextField()
        Refund = DecimalField()
        Reservation = ReservationInfo()

    def perform(
        self, user: User, *, reservation_id: int, test_mode: bool = False
    ) -> dict[str, object]:
        now = timezone.now()
        if test_mode:
            reservation = checkout.get_own_reservation(reservation_id, user)
            outcome = cancellation.preview(reservation, now=now)
        else:
            outcome = cancellation.cancel(reservation_id, user=user, now=now)
        return {
            "message": outcome.message,
            "refund": outcome.refund,
            "reservation": records.get_record(reservation_id, user=user),
        }


class UpdateAllowances(Operation):
    """Select exactly these allowances for a draft."""

    class Input(ContractSerializer):
        ReservationId = IdField(required=True)
        AllowanceIds = ListField(IdField())

    class Output(ContractSerializer):
        UpdatedReservation = ReservationInfo()

    def perform(
        self, user: User, *, reservation_id: int, allowance_ids: list[int] | None = None
    ) -> dict[str, object]:
        drafts.select_allowances(reservation_id, allowance_ids or [], user=user, now=timezone.now())
        return {"updated_reservation": records.get_record(reservation_id, user=user)}


class ListReservations(Operation):
    """List the account's reservations that overlap a time span, in order of their start."""

    csv_rows_field = "Reservations"

    class Input(ContractSerializer):
        From = DateTimeField()
        To = DateTimeField()
        Statuses = ListField(ChoiceField(Status))
        PageSize = IntegerField(min_value=1, max_value=MAX_PAGE_SIZE)
        Cursor = TextField(max_length=255)

    class Output(ContractSerializer):
        Reservations = ReservationInfo(many=True)
        NextCursor = TextField()

    def perform(
        self,
        user: User,
        *,
        to: dt.datetime | None = None,
        statuses: Sequence[str] | None = None,
        page_size: int = MAX_PAGE_SIZE,
        cursor: str = "",
        **fields: dt.datetime | None,
    ) -> ReservationPage:
        # `from` is a keyword of Python, so it cannot be a parameter.
        start = fields.get("from")
        if start and to and start > to:
            raise InvalidRequest({"to": "To must not be before From."})
        return list_page(
            user, start=start, end=to, statuses=statuses or (), page_size=page_size, cursor=cursor
        )
