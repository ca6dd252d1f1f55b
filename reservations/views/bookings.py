"""The operations on the reservations of the signed-in account."""

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Unpack

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.act import Act
from accounts.limits import RECEIPT, count_declined_cards
from accounts.models import User
from payments.cards import CardFields
from payments.serializers import EXAMPLE_CARD, AccountPaymentInfo
from reservations import records
from reservations.booking import cancellation, charging, checkout, differences, drafts, shown_terms
from reservations.booking.amendments import ChangeRequest
from reservations.booking.charging import PaymentMethod
from reservations.listing import MAX_PAGE_SIZE, ReservationPage, list_page
from reservations.models import Receipt, ReceiptType
from reservations.models.booking_fields import BookingValues
from reservations.models.reservation import get_own_reservation
from reservations.models.status import Status
from reservations.notifications import confirmation
from reservations.receipts import sending
from reservations.receipts.issuing import issue_documents
from reservations.receipts.rendering import build_pdf_response
from reservations.serializers import (
    EXAMPLE_BOOKED,
    EXAMPLE_BOOKING,
    EXAMPLE_DRAFT,
    START_DATE,
    AllowanceUsageInfo,
    CancellationTermsInfo,
    ChangeInput,
    LineItemInfo,
    NewReservationInput,
    OwnReservationInput,
    ReservationInfo,
)
from roombook.api.fields import (
    BooleanField,
    CenterDateTimeField,
    ChoiceField,
    DateTimeField,
    DecimalField,
    IdField,
    IntegerField,
    ListField,
    TextField,
    UrlField,
)
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer
from roombook.errors import (
    AllowanceExhausted,
    CardDeclined,
    InvalidRequest,
    NoSavedCard,
    NotFound,
    PromoCodeInvalid,
    RateNotConfigured,
    ReceiptNotAvailable,
    ReservationNotOpen,
    SlotUnavailable,
    TooManyRequests,
)
from roombook.middleware import get_client_address, secret_page


class GetReservation(Operation):
    """Return one of the account's reservations."""

    errors = (NotFound,)
    example = {"Id": 1}

    class Input(ContractSerializer):
        Id = IdField(required=True, help_text="One of the account's reservations.")

    class Output(ContractSerializer):
        Reservation = ReservationInfo(help_text="The reservation.")

    def perform(self, user: User, *, id: int) -> dict[str, object]:  # noqa: A002 (the contract's Id)
        return {"reservation": records.get_record(id, user=user)}


class UpdatePromoCode(Operation):
    """Set, replace or remove the promo code of a draft, and price the draft again.

    A refused code changes nothing. Repeated wrong codes are answered with `TooManyRequests`.
    """

    errors = (NotFound, ReservationNotOpen, PromoCodeInvalid, RateNotConfigured, TooManyRequests)
    example = {"ReservationId": EXAMPLE_DRAFT, "PromoCode": "WELCOME10"}

    class Input(OwnReservationInput):
        PromoCode = TextField(
            max_length=50, help_text="In any case; absent or empty removes the code."
        )

    class Output(ContractSerializer):
        UpdatedReservation = ReservationInfo(help_text="The draft with its new price.")

    def perform(
        self, user: User, *, reservation_id: int, promo_code: str = ""
    ) -> dict[str, object]:
        drafts.apply_promo_code(Act(user, timezone.now()), reservation_id, promo_code)
        return {"updated_reservation": records.get_record(reservation_id, user=user)}


class GetAllowances(Operation):
    """List the allowances that a reservation uses or could use."""

    csv_rows_field = "Allowances"
    errors = (NotFound,)
    example = {"ReservationId": EXAMPLE_DRAFT}
    Input = OwnReservationInput

    class Output(ContractSerializer):
        Allowances = AllowanceUsageInfo(many=True, help_text="All that are valid for the booking.")

    def perform(self, user: User, *, reservation_id: int) -> dict[str, object]:
        record = records.get_record(reservation_id, user=user, shows_price=False)
        return {"allowances": record.all_allowances}


class Checkout(Operation):
    """Pay for a draft by card and book it. Repeat the request whenever in doubt.

    Unless there is nothing to pay, either UseSavedPaymentInfo or PaymentInfo is required. A
    reservation that is booked already gives the same response again, and nothing is charged twice.
    `Processing` means that the result of the payment is not known yet: wait, then repeat. Or the
    customer has to confirm the payment at the bank: see Payment action.
    """

    errors = (
        NotFound,
        CardDeclined,
        SlotUnavailable,
        ReservationNotOpen,
        PromoCodeInvalid,
        AllowanceExhausted,
        NoSavedCard,
        RateNotConfigured,
        TooManyRequests,
    )
    example = {"ReservationId": EXAMPLE_DRAFT, "PaymentInfo": EXAMPLE_CARD}

    class Input(OwnReservationInput):
        UseSavedPaymentInfo = BooleanField(help_text="Pay with the account's saved card.")
        PaymentInfo = AccountPaymentInfo(help_text="Pay with this card.")
        SavePaymentInfo = BooleanField(help_text="Save the card of PaymentInfo after it has paid.")
        TestMode = BooleanField(help_text="Check everything, but store, hold and charge nothing.")
        PartnerCode = TextField(
            max_length=50, help_text="The code of the partner that arranged the booking."
        )

    class Output(ContractSerializer):
        ConfirmationMessage = TextField(help_text="For the customer: what was booked and charged.")
        IsLive = BooleanField(
            help_text="A booking that is confirmed at once and moves real money: `false` in test"
            " mode, with the sandbox, and while the center has to approve."
        )
        Status = ChoiceField(
            Status,
            contract_type="ReservationStatuses",
            help_text="`Confirmed`; `Pending` until the center approves; `Processing`; `New` after"
            " a test.",
        )

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
        network_address, now = get_client_address(self.request), timezone.now()
        with count_declined_cards(network_address, now=now):
            reservation = check_out(
                Act(user, now),
                reservation_id,
                payment_method=charging.PaymentMethod(
                    use_saved_payment_info,
                    payment_info,
                    save_payment_info,
                    network_address=network_address,
                ),
                partner_code=partner_code,
            )
        return {
            "confirmation_message": confirmation.get_message(reservation),
            "is_live": reservation.is_live and not test_mode,
            "status": reservation.status,
        }


# --- Extensions of the contract, by the same conventions ------------------------------------------


class PaymentActionInfo(ContractSerializer):
    """How the customer confirms a payment at the bank. Responses only."""

    Gateway = TextField(help_text="`stripe`, or `sandbox`.")
    PublishableKey = TextField(help_text="With which the gateway's SDK is started.")
    ClientSecret = TextField(help_text="The payment, for the gateway's SDK. Keep it secret.")
    Url = UrlField(help_text="The page of the bank, for apps without the SDK. Keep it secret.")
    ExpiresAt = DateTimeField(help_text="Until then the room is held for the customer.")


class GetPaymentAction(Operation):
    """Return what the customer has to do at the bank, after a Checkout answered `Processing`.

    Let the customer confirm, then send the same Checkout again. Without PaymentAction there is
    nothing to do.
    """

    returns_secret = True
    errors = (NotFound,)
    example = {"ReservationId": EXAMPLE_DRAFT}
    Input = OwnReservationInput

    class Output(ContractSerializer):
        PaymentAction = PaymentActionInfo(help_text="How to confirm the payment.")
        Status = ChoiceField(
            Status, contract_type="ReservationStatuses", help_text="Of the reservation."
        )

    def perform(self, user: User, *, reservation_id: int) -> dict[str, object]:
        status, action = charging.get_payment_action(reservation_id, user=user, now=timezone.now())
        return {"payment_action": action, "status": status}


class CreateReservation(Operation):
    """Create a draft that holds its room for a limited time.

    Included hours of the account are applied automatically. Checkout books the draft.
    """

    accepts_idempotency_key = True
    errors = (NotFound, SlotUnavailable, RateNotConfigured, TooManyRequests)
    example = {**EXAMPLE_BOOKING, "NumberOfAttendees": 6}

    Input = NewReservationInput

    class Output(ContractSerializer):
        Reservation = ReservationInfo(help_text="The draft with its price.")

    def perform(
        self,
        user: User,
        *,
        meeting_room_id: int,
        start_date: dt.datetime,
        end_date: dt.datetime,
        **values: Unpack[BookingValues],
    ) -> dict[str, object]:
        reservation = drafts.create_draft(
            Act(user, timezone.now()),
            user,
            room_id=meeting_room_id,
            start=start_date,
            end=end_date,
            **values,
        )
        return {"reservation": records.get_record(reservation.pk, user=user)}


class CancelReservation(Operation):
    """Cancel a reservation and refund what its policy allows. Repeating it changes nothing."""

    errors = (NotFound, ReservationNotOpen)
    example = {"ReservationId": EXAMPLE_DRAFT, "TestMode": True}

    class Input(OwnReservationInput):
        TestMode = BooleanField(help_text="Only tell what cancelling now would do.")

    class Output(ContractSerializer):
        Message = TextField(help_text="For the customer: what happened, and what is refunded.")
        Refund = DecimalField(help_text="The amount that is refunded.")
        Reservation = ReservationInfo(help_text="The reservation after that.")

    def perform(
        self, user: User, *, reservation_id: int, test_mode: bool = False
    ) -> dict[str, object]:
        act = Act(user, timezone.now())
        if test_mode:
            outcome = cancellation.cancel.preview(act, reservation_id).result
        else:
            outcome = cancellation.cancel(act, reservation_id)
        return {
            "message": outcome.forecast if test_mode else outcome.message,
            "refund": outcome.refund,
            "reservation": records.get_record(reservation_id, user=user),
        }


class GetTerms(Operation):
    """Return what comes back if a reservation is cancelled, and when.

    Of one of the account's reservations, or of a room before it is booked: either ReservationId, or
    RoomId and StartDate.
    """

    errors = (NotFound,)
    example = {"ReservationId": EXAMPLE_DRAFT}

    class Input(ContractSerializer):
        ReservationId = IdField(help_text="One of the account's reservations.")
        RoomId = IdField(help_text="A room, with StartDate.")
        StartDate = CenterDateTimeField(help_text=START_DATE)

    class Output(ContractSerializer):
        Terms = CancellationTermsInfo(help_text="The terms of cancellation.")

    def perform(
        self,
        user: User,
        *,
        reservation_id: int | None = None,
        room_id: int | None = None,
        start_date: dt.datetime | None = None,
    ) -> dict[str, object]:
        now, room = timezone.now(), {"room_id": room_id, "start_date": start_date}
        if reservation_id is not None:
            if sent := [name for name, value in room.items() if value is not None]:
                raise InvalidRequest(dict.fromkeys(sent, "Not together with ReservationId."))
            return {"terms": shown_terms.show_reservation_terms(reservation_id, user, now=now)}
        if room_id is None and start_date is None:
            raise InvalidRequest(
                {"reservation_id": "ReservationId, or RoomId and StartDate, is required."}
            )
        if room_id is None or start_date is None:
            missing = "room_id" if room_id is None else "start_date"
            raise InvalidRequest({missing: "RoomId and StartDate come together."})
        return {"terms": shown_terms.show_room_terms(room_id, start_date, now=now)}


class UpdateAllowances(Operation):
    """Select exactly these allowances for a draft, and price the draft again.

    From then on, none is applied automatically.
    """

    errors = (NotFound, ReservationNotOpen, PromoCodeInvalid, RateNotConfigured)
    example = {"ReservationId": EXAMPLE_DRAFT, "AllowanceIds": [1, 2]}

    class Input(OwnReservationInput):
        AllowanceIds = ListField(
            IdField(), help_text="As Get allowances lists them; absent or empty selects none."
        )

    class Output(ContractSerializer):
        UpdatedReservation = ReservationInfo(help_text="The draft with its new price.")

    def perform(
        self, user: User, *, reservation_id: int, allowance_ids: list[int] | None = None
    ) -> dict[str, object]:
        drafts.select_allowances(Act(user, timezone.now()), reservation_id, allowance_ids or [])
        return {"updated_reservation": records.get_record(reservation_id, user=user)}


class ListReservations(Operation):
    """List the account's reservations that overlap a time span, in order of their start."""

    csv_rows_field = "Reservations"
    example = {"Statuses": ["Confirmed", "Pending"], "PageSize": 10}

    class Input(ContractSerializer):
        From = DateTimeField(help_text="Without an offset UTC; a date alone is its midnight.")
        To = DateTimeField(help_text="The same; not before From.")
        Statuses = ListField(ChoiceField(Status), help_text="Only these; absent or empty: all.")
        PageSize = IntegerField(min_value=1, max_value=MAX_PAGE_SIZE, help_text="How many at once.")
        Cursor = TextField(
            max_length=255,
            help_text="NextCursor of the page before, with the same From, To and Statuses.",
        )

    class Output(ContractSerializer):
        Reservations = ReservationInfo(many=True, help_text="By Start, then Id.")
        NextCursor = TextField(help_text="The Cursor of the next page, while there is one.")

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


# --- Changes of confirmed bookings (B27) ----------------------------------------------------------

EXAMPLE_CHANGE = {"ReservationId": EXAMPLE_BOOKED, "NumberOfAttendees": 4}


class PreviewChange(Operation):
    """Return what a change of a confirmed booking would cost. Nothing is changed or charged.

    If the change is not possible, the response is the error that Change reservation would give.
    """

    errors = (
        NotFound,
        SlotUnavailable,
        ReservationNotOpen,
        PromoCodeInvalid,
        AllowanceExhausted,
        RateNotConfigured,
    )
    example = EXAMPLE_CHANGE
    Input = ChangeInput

    class Output(ContractSerializer):
        OldTotal = DecimalField(help_text="What the booking costs now.")
        NewTotal = DecimalField(help_text="What it would cost: the ExpectedTotal of the change.")
        Difference = DecimalField(
            help_text="NewTotal less OldTotal: what would be charged, or below 0 refunded."
        )
        LineItems = LineItemInfo(many=True, help_text="The bill after the change.")

    def perform(self, user: User, *, reservation_id: int, **fields: Any) -> dict[str, object]:
        request = _build_request(reservation_id, user, **fields)
        result = differences.preview_change(Act(user, timezone.now()), reservation_id, request)
        return {
            "old_total": result.old_total,
            "new_total": result.new_total,
            "difference": result.difference,
            "line_items": result.new_lines or result.old_lines,
        }


class ChangeReservation(Operation):
    """Change the time, room, services or attendees of a confirmed booking.

    A higher price is charged as in a Checkout, a lower one is refunded. Repeat the request whenever
    in doubt: if the booking is already as it should be, nothing is charged. IsApplied is `false`
    while the result of the payment is not known: wait, then repeat. Or the customer has to confirm
    the payment at the bank: see Payment action. Another change is refused until then.
    """

    errors = Checkout.errors
    example = {**EXAMPLE_CHANGE, "ExpectedTotal": 83.78}

    class Input(ChangeInput):
        ExpectedTotal = DecimalField(
            required=True, min_value=0, help_text="The NewTotal that the customer has seen."
        )
        UseSavedPaymentInfo = BooleanField(help_text="Pay a difference with the saved card.")
        PaymentInfo = AccountPaymentInfo(help_text="Pay a difference with this card.")

    class Output(ContractSerializer):
        Message = TextField(help_text="For the customer: what is booked, charged and refunded.")
        IsApplied = BooleanField(help_text="`false` while the payment is not resolved.")
        Charge = DecimalField(help_text="What is charged for the difference.")
        Refund = DecimalField(help_text="What is refunded.")
        Reservation = ReservationInfo(help_text="The reservation after that.")

    def perform(
        self,
        user: User,
        *,
        reservation_id: int,
        expected_total: Decimal,
        use_saved_payment_info: bool = False,
        payment_info: CardFields | None = None,
        **fields: Any,
    ) -> dict[str, object]:
        request = _build_request(reservation_id, user, **fields)
        network_address, now = get_client_address(self.request), timezone.now()
        with count_declined_cards(network_address, now=now):
            outcome = differences.change_booking(
                Act(user, now),
                reservation_id,
                request,
                PaymentMethod(
                    use_saved_payment_info, payment_info, network_address=network_address
                ),
                expected_total=expected_total,
            )
        reservation = get_own_reservation(reservation_id, user)
        message = confirmation.get_change_message(
            reservation,
            is_applied=outcome.is_applied,
            charge=outcome.charge,
            refund=outcome.refund,
        )
        return {
            "message": message,
            "is_applied": outcome.is_applied,
            "charge": outcome.charge,
            "refund": outcome.refund,
            "reservation": records.get_record(reservation_id, user=user),
        }


def _build_request(
    reservation_id: int,
    user: User,
    *,
    meeting_room_id: int | None = None,
    start_date: dt.datetime | None = None,
    end_date: dt.datetime | None = None,
    **values: Unpack[BookingValues],
) -> ChangeRequest:
    """Return what the booking should be, with its own room and times for what is absent."""
    booking = get_own_reservation(reservation_id, user)
    return ChangeRequest(
        meeting_room_id or booking.room_id,
        start_date or booking.start,
        end_date or booking.end,
        values,
        expected_version=booking.version,
    )


# --- Receipts: their addresses, and the files (B28.5) ---------------------------------------------


class ReceiptInfo(ContractSerializer):
    """A receipt or a credit note. Responses only."""

    Number = TextField(help_text="Unique. It never changes.")
    Type = ChoiceField(
        ReceiptType,
        contract_type="string",
        help_text="`Receipt`, or `CreditNote` for what was refunded of earlier receipts.",
    )
    IssuedAt = DateTimeField(help_text="When it was issued.")
    Total = DecimalField(help_text="The amount paid, or refunded.")
    Currency = TextField(help_text="ISO 4217.")
    Url = UrlField(help_text="The PDF. Absolute; it needs no Token, so keep it secret.")
    ExpiresAt = DateTimeField(help_text="Until then Url is valid.")


class GetReceipts(Operation):
    """Return all receipts and credit notes of a reservation, the oldest first.

    What was paid and has no receipt yet gets one now. Later calls return the same documents, with
    new addresses.
    """

    returns_secret = True
    csv_rows_field = "Receipts"
    errors = (NotFound, ReceiptNotAvailable, TooManyRequests)
    example = {"ReservationId": 1}
    Input = OwnReservationInput

    class Output(ContractSerializer):
        Receipts = ReceiptInfo(many=True, help_text="At least one.")

    def perform(self, user: User, *, reservation_id: int) -> dict[str, object]:
        now = timezone.now()
        reservation = get_own_reservation(reservation_id, user)
        RECEIPT.attempt(user.pk, now=now)
        issue_documents(reservation, by=None, now=now)
        documents = reservation.receipts.exclude(content={}).order_by("pk")
        expires_at = now + sending.ADDRESS_LIFETIME
        return {"receipts": [_describe(each, expires_at) for each in documents]}


def _describe(receipt: Receipt, expires_at: dt.datetime) -> dict[str, object]:
    return {
        "number": receipt.number,
        "type": receipt.type,
        "issued_at": receipt.issued_at,
        "total": receipt.total,
        "currency": receipt.currency,
        "url": reverse("receipt-file", args=[sending.sign_receipt(receipt)]),
        "expires_at": expires_at,
    }


@secret_page
@require_safe
def show_receipt(request: HttpRequest, secret: str) -> HttpResponse:
    """Return the PDF of an address that Get receipts returned; 404 once it has expired."""
    receipt = sending.find_signed_receipt(secret)
    if receipt is None:
        raise Http404
    RECEIPT.attempt(receipt.reservation.user_id, now=timezone.now())
    return build_pdf_response(receipt, is_download=True)
