"""Actions that change a reservation, and take the difference if it costs more (B27)."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any, ClassVar

from centers.requested_span import resolve_span
from payments.gateways.manual import MANUAL_GATEWAYS
from reservations import display
from reservations.alternatives import AlternativeSearch
from reservations.booking import amendments, differences, payment_links
from reservations.booking.amendments import Amendment, ChangeRequest, RoomSlot, describe_room
from reservations.booking.charging import SAVED_CARD_OF_ABSENT
from reservations.booking.commands import Preview
from reservations.desk.actions.amendment_forms import ExtendForm, RescheduleForm, ServicesForm
from reservations.desk.actions.base import (
    Action,
    ActionPreview,
    ActionRequest,
    compare_bills,
    describe_due_refund,
    describe_email,
    format_refund,
)
from reservations.desk.actions.forms import ActionForm
from reservations.desk.actions.payment_form import (
    LINK,
    SAVED_CARD,
    SEND_LINK,
    describe_sent_link,
    describe_way,
    explains_absent_customer,
    find_missing,
    get_saved_card,
)
from reservations.desk.find_room import FoundRooms, find_rooms
from reservations.models import Reservation
from reservations.models.booking_fields import describe_columns
from reservations.notifications.cancellation_terms import describe_cancellation
from reservations.pricing.terms import get_present_terms, get_terms
from roombook import dates, money
from roombook.errors import InvalidRequest


class RescheduleAction(Action):
    name, label, icon = "move", "Reschedule", "open_with"
    title, confirm_label = "Reschedule to another time or room", "Reschedule"
    command = amendments.amend
    form_class: ClassVar[type[ActionForm]] = RescheduleForm

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return amendments.can_reschedule(reservation, now=now)

    def get_options(self, request: ActionRequest) -> dict[str, Any]:
        return {"request": self.get_change(request), "waiver": request.data.get("waiver", "")}

    def describe(self, request: ActionRequest, would: Preview[Amendment]) -> ActionPreview:
        reservation = request.reservation
        result, way = would.result, request.data.get("way", "")
        is_paid = way and result.is_refused and reservation.is_confirmed_or_completed
        old, new = result.old, result.new
        preview = ActionPreview(
            facts=list(_describe_change(result)), expected_amount=result.new_total
        )
        if is_paid:
            result = replace(result, charge=result.difference)
        elif would.problem:
            preview.problems.append(would.problem)
            if result.difference > 0:
                refusal = amendments.get_waiver_refusal(request.act.staff, old.room, new.room)
                preview.notes += [refusal] if refusal else []
        if result.new_lines:
            preview.bill = compare_bills(result)
        if result.waived:
            preview.facts.append(("Waived", money.format_amount(result.waived)))
        moved = result.reservation
        if reservation.is_new:
            assert moved.hold_until is not None  # a draft that is moved holds its room
            held_until = display.format_datetime(moved, moved.hold_until)
            preview.facts.append(("Room held until", held_until))
        elif not preview.problems:
            preview.facts.append(
                _describe_difference(reservation, result, way, now=request.act.now)
            )
            if moved.start > request.act.now:
                terms = describe_cancellation(moved, now=request.act.now)
                preview.facts.append(("Cancellation", terms))
            preview.facts += [
                *_describe_terms(result),
                describe_email(
                    reservation, "with the link" if is_paid and way == LINK else "with the change"
                ),
            ]
            if is_paid and way == LINK:
                preview.confirm_label = SEND_LINK
                until = differences.get_link_end(result, now=request.act.now)
                held_until = display.format_datetime(reservation, until)
                preview.facts.append(("Paid and changed, or held, until", held_until))
            elif is_paid:
                describe_way(preview, reservation.user, way, result.charge)
            if is_paid:
                preview.problems += find_missing(request.data).values()
        is_free = not result.difference and not result.waived
        # What has begun cannot be moved back.
        can_undo = is_free and not preview.problems and new.start > request.act.now
        if old != new and can_undo:
            preview.undo = _build_undo(reservation, old, moved.version)
        return preview

    def find_instead(self, request: ActionRequest) -> FoundRooms | None:
        room = request.data.get("room")
        if room is None:
            return None
        span = resolve_span(room.center, request.data["start"], request.data["end"])
        customer = request.reservation.user
        search = AlternativeSearch(room, span, (), customer, request.act.now)
        return find_rooms(search, request.act.staff, self.permission)

    def execute(self, request: ActionRequest) -> str:
        change, way = self.get_change(request), request.data.get("way", "")
        reservation, options = request.reservation, self.get_options(request)
        new_total = request.require_shown_amount()
        if new_total > reservation.total_cost:
            if missing := find_missing(request.data):
                raise InvalidRequest(missing)
            is_charged = reservation.is_confirmed_or_completed and not options["waiver"]
            if is_charged and way == SAVED_CARD:
                return self._charge_saved_card(request, change, new_total)
            if is_charged and way == LINK:
                waiting = payment_links.send_change_link(
                    request.act,
                    reservation.pk,
                    change,
                    expected_total=new_total,
                    base_url=request.base_url,
                )
                return describe_sent_link(waiting)
        taken = None
        if way in MANUAL_GATEWAYS:
            taken = amendments.TakenPayment(way, request.data["reference"])
        result = amendments.amend(
            request.act,
            reservation.pk,
            taken=taken,
            expected_total=new_total,
            **options,
        )
        text = "Changed."
        if result.old != result.new:
            text = f"Rescheduled to {_describe_slot(result.new)}."
        if result.charge:
            text += f" {money.format_amount(result.charge)} {MANUAL_GATEWAYS[way].charged}."
        return text + describe_due_refund(result.refund)

    def get_change(self, request: ActionRequest) -> ChangeRequest:
        """What the reservation should be."""
        data = request.data
        return ChangeRequest(
            data["room"].pk, data["start"], data["end"], expected_version=data["expected_version"]
        )

    def _charge_saved_card(
        self, request: ActionRequest, change: ChangeRequest, total: Decimal
    ) -> str:
        with explains_absent_customer():
            outcome = differences.change_booking(
                request.act,
                request.reservation.pk,
                change,
                SAVED_CARD_OF_ABSENT,
                expected_total=total,
            )
        amount = money.format_amount(outcome.charge)
        if not outcome.is_applied:
            return (
                f"The payment of {amount} is being confirmed. The reservation is changed as soon as"
                " the gateway answers."
            )
        if not outcome.charge:
            # Another request has done it, or the recovery of this one.
            return "The reservation is like that already. Nothing more was charged."
        return f"Changed, and {amount} charged to the saved card."


class ExtendAction(RescheduleAction):
    name, label, icon = "extend", "Extend", "more_time"
    title, confirm_label = "Extend the meeting", "Extend and take payment"
    form_class = ExtendForm

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        return amendments.can_extend(reservation, now=now)

    def get_change(self, request: ActionRequest) -> ChangeRequest:
        reservation, data = request.reservation, request.data
        return ChangeRequest(
            reservation.room_id,
            reservation.start,
            data["end"],
            expected_version=data["expected_version"],
        )


class ChangeServicesAction(RescheduleAction):
    name, label, icon = "services", "Services and guests", "room_service"
    title, confirm_label = "Change services and guests", "Change"
    form_class = ServicesForm

    def is_available(self, reservation: Reservation, *, now: dt.datetime) -> bool:
        has_begun = reservation.start <= now
        return super().is_available(reservation, now=now) or (
            has_begun and amendments.can_add_to_bill(reservation, now=now)
        )

    def get_change(self, request: ActionRequest) -> ChangeRequest:
        reservation, data = request.reservation, request.data
        return ChangeRequest(
            reservation.room_id,
            reservation.start,
            reservation.end,
            data["values"],
            expected_version=data["expected_version"],
        )


def _describe_change(result: Amendment) -> Iterator[tuple[str, str]]:
    if result.old != result.new:
        yield "From", _describe_slot(result.old)
        yield "To", _describe_slot(result.new)
    former = dict(describe_columns(result.former))
    for label, text in describe_columns(result.reservation):
        if text != former.get(label):
            yield label, f"{text} instead of {former[label]}" if label in former else text


def _describe_terms(result: Amendment) -> Iterator[tuple[str, str]]:
    """Both terms, if they differ: the customer gets the better ones."""
    booked, present = get_terms(result.former), get_present_terms(result.new.room)
    if booked != present:
        yield "Terms when booked", str(booked)
        yield "Present terms", str(present)


def _describe_difference(
    reservation: Reservation, result: Amendment, way: str, *, now: dt.datetime
) -> tuple[str, str]:
    if not result.charge:
        return "Refund", format_refund(result.refund)
    if way == LINK:
        return "To pay by the link", money.format_amount(result.charge)
    card = get_saved_card(reservation, now=now) if way == SAVED_CARD else None
    payer = card.description if card else MANUAL_GATEWAYS[way].label
    return "Charge", f"{money.format_amount(result.charge)}, {payer}"


def _build_undo(reservation: Reservation, old: RoomSlot, version: int) -> dict[str, str]:
    """What has to be submitted to move the reservation back, if that would restore it exactly.

    ``version`` is that of the reservation after the move.

    An override of the opening hours would be lost, and a local time that occurs twice is the first.
    """
    start, end = (at.astimezone(old.room.center.zone) for at in (old.start, old.end))
    if reservation.hours_override_reason or start.fold or end.fold:
        return {}
    return {
        "room": str(old.room.pk),
        "start_0": f"{start:%Y-%m-%d}",
        "start_1": f"{start:%H:%M}",
        "end_0": f"{end:%Y-%m-%d}",
        "end_1": f"{end:%H:%M}",
        "expected_version": str(version),
        "expected_amount": str(reservation.total_cost),
    }


def _describe_slot(slot: RoomSlot) -> str:
    time = dates.format_span(slot.start, slot.end, slot.room.center.zone)
    return f"{describe_room(slot.room)}, {time}"
