"""What staff can do with a reservation: approve, cancel, move it, and so on.

The page of an action shows a preview first; only what is confirmed there is done. Whether or not an
action is offered, the domain checks it again under its locks, and refuses it with a message.
"""

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import partial

from accounts.models import User
from payments.gateways.manual import ACCOUNT, MANUAL_GATEWAYS
from payments.manual_payments import get_credit_refusal, get_owed_amount
from reservations import display
from reservations.booking import (
    amendments,
    approval,
    attendance,
    cancellation,
    charging,
    checkout,
    differences,
    drafts,
    payment_links,
    price_adjustments,
    resending,
)
from reservations.booking.amendments import Amendment, RoomSlot, TakenPayment, describe_room
from reservations.booking.cancellation import CancellationOutcome
from reservations.booking.charging import SAVED_CARD_OF_ABSENT
from reservations.booking.differences import ChangeOutcome
from reservations.booking.price_adjustments import Adjustment
from reservations.desk.action_forms import (
    LINK,
    SAVED_CARD,
    ActionForm,
    CancellationForm,
    HoldExtensionForm,
    MessageForm,
    PriceAdjustmentForm,
    TakePaymentForm,
    find_missing,
    get_saved_card,
)
from reservations.desk.booking_form import ExtendForm, MoveForm, ServicesForm
from reservations.desk.previews import (
    E_MAIL_TO,
    Action,
    ActionPreview,
    Call,
    always,
    compare_bills,
    describe_email,
)
from reservations.models import BookingChange, Reservation
from reservations.models.booking_fields import describe_columns
from reservations.models.status import Status, can_transition
from reservations.notifications import confirmation, emails
from reservations.notifications.cancellation_terms import describe_cancellation
from reservations.notifications.confirmation import describe_card, describe_refund_target
from reservations.pricing.terms import ALL, get_present_terms, get_terms, round_hours
from roombook import dates, money
from roombook.errors import InvalidRequest

SEND_LINK = "Send payment link"


def get_available_actions(
    user: User, reservation: Reservation, *, now: dt.datetime
) -> list[Action]:
    """Return the actions that the user may take on the reservation now."""
    return [
        action
        for action in ACTIONS.values()
        if action.is_permitted(user, reservation) and action.is_available(reservation, now=now)
    ]


# --- Requests and cancelling ----------------------------------------------------------------------


def _describe_approval(preview: ActionPreview) -> None:
    reservation = preview.form.reservation
    payment = next(iter(charging.get_booked_payments(reservation)), None)
    if payment is not None:
        charge = f"{money.format_amount(payment.amount)} from {describe_card(payment)}"
        if payment.is_manual:
            charge = "Nothing, it is paid already"
        preview.facts.append(("Charge", charge))
        if payment.authorized_until is not None:
            until = display.format_datetime(reservation, payment.authorized_until)
            preview.facts.append(("Authorized until", until))
    elif preview.result.status == Status.EXPIRED:
        preview.problems.append(
            "The payment for this request is no longer authorized. If you approve the request, it"
            " expires."
        )
    else:
        preview.facts.append(("Charge", "Nothing, it is free"))


def _approve(form: ActionForm) -> str:
    approval.approve(form.act, form.reservation.pk)
    return "Approved."


def _describe_decline(preview: ActionPreview) -> None:
    released = "Nothing, no payment is authorized"
    for payment in charging.get_booked_payments(preview.form.reservation)[:1]:
        amount = money.format_amount(payment.amount)
        released = f"{amount} on {describe_card(payment)}; nothing was charged"
        if payment.is_manual:
            released = f"{amount} is {describe_refund_target([payment])}, by you"
    preview.facts.append(("Released", released))
    preview.facts += _describe_returned_benefits(preview.form.reservation)


def _can_cancel(reservation: Reservation, *, now: dt.datetime) -> bool:
    has_begun = not reservation.is_new and reservation.start <= now
    is_waiting = reservation.waiting_payment is not None
    return (can_transition(reservation.status, Status.CANCELLED) or is_waiting) and not has_begun


def _describe_cancellation(preview: ActionPreview) -> None:
    reservation, outcome = preview.form.reservation, preview.result.outcome
    preview.facts += _describe_outcome(outcome)
    preview.expected_amount = outcome.refund
    if outcome.decision is None:
        preview.notes.append(preview.result.forecast)
    else:
        preview.facts.append(("By the policy", money.format_amount(outcome.policy_refund)))
    if reservation.booked_at is not None:
        preview.facts += [
            ("Terms", str(get_terms(reservation))),
            ("Now", describe_cancellation(reservation, now=preview.form.act.now)),
            *_describe_returned_benefits(reservation, outcome.share),
        ]


def _describe_outcome(outcome: CancellationOutcome) -> list[tuple[str, str]]:
    refund, fee = map(money.format_amount, (outcome.refund, outcome.fee))
    return [("Refund", refund), ("Fee", fee)]


def _describe_returned_benefits(
    reservation: Reservation, share: Decimal = Decimal(1)
) -> list[tuple[str, str]]:
    """The promo code use and the included hours of which the customer gets this share back."""
    facts = []
    if reservation.promo_redemptions.filter(given_back_at__isnull=True).exists():
        outcome = "is returned" if share == 1 else "is not returned"
        facts.append(("Promo code", f"The use of {reservation.promo_code} {outcome}"))
    if uses := [each.hours for each in reservation.allowance_uses.all() if each.hours]:
        returned = sum(round_hours(hours * share) for hours in uses)
        of_all = "" if share == 1 else f" of {sum(uses)}"
        facts.append(("Included hours", f"{returned:g}{of_all} h are returned"))
    return facts


# --- Whether the customer has come ----------------------------------------------------------------


def _can_be_no_show(reservation: Reservation, *, now: dt.datetime) -> bool:
    is_open = can_transition(reservation.status, Status.NO_SHOW)
    return is_open and reservation.start <= now and not reservation.is_checked_in


def _is_no_show_immediate(reservation: Reservation, *, now: dt.datetime) -> bool:
    # Until the end it releases the room: once somebody has booked it, nothing undoes that. Nor does
    # anything undo a refund.
    return reservation.end <= now and get_terms(reservation).no_show_percent == ALL


def _describe_no_show(preview: ActionPreview) -> None:
    row = preview.form.reservation
    outcome = attendance.decide_no_show(row, charging.get_booked_payments(row))
    if outcome.share:
        preview.facts += _describe_outcome(outcome)
        preview.facts += _describe_returned_benefits(row, outcome.share)
    else:
        preview.facts.append(("Refund", "None"))
    if row.end > preview.form.act.now:
        preview.facts.append(("Room", "Released at once, so that others can book it"))


# --- Prices, holds and e-mails --------------------------------------------------------------------


def _call_adjustment(form: ActionForm) -> Call:
    version, total = form.get_expected("expected_version"), form.expected_amount
    options = {**form.cleaned_data, "expected_version": version, "expected_total": total}
    return price_adjustments.adjust_price, options


def _describe_adjustment(preview: ActionPreview) -> None:
    preview.bill = compare_bills(preview.result)
    preview.expected_amount = preview.result.new_total
    preview.expected_version = preview.form.reservation.version
    if not preview.form.reservation.is_new:
        preview.facts.append(("Refund", _format_refund(preview.result.refund)))


def _report_adjustment(result: Adjustment) -> str:
    total = money.format_amount(result.new_total)
    return f"The new price is {total}.{_describe_due_refund(result.refund)}"


def _format_refund(amount: Decimal) -> str:
    return money.format_amount(amount) if amount else "None"


def _describe_due_refund(refund: Decimal) -> str:
    """The end of a message that says what is refunded, if anything."""
    return f" {money.format_amount(refund)} will be refunded." if refund else ""


def _describe_hold(preview: ActionPreview) -> None:
    row = preview.form.reservation
    is_held = row.is_held_at(preview.form.act.now)
    held_until = _format_end(row, row.hold_until) if is_held else "Not held, the hold has expired"
    then = _format_end(row, preview.result.hold_until)
    preview.facts += [("Held until", held_until), ("Then held until", then)]


def _format_end(reservation: Reservation, until: dt.datetime | None) -> str:
    """Until when a hold or a payment link lasts."""
    assert until is not None  # because the room is held
    return display.format_datetime(reservation, until)


def _describe_resending(preview: ActionPreview) -> None:
    reservation, message = preview.form.reservation, preview.result
    preview.facts.append((E_MAIL_TO, message.to))
    preview.email = message
    if reservation.has_former_address:
        preview.notes.append("The address has changed: the customer gets the new details.")
    elif message.calendar:
        preview.notes.append(
            "The attached calendar file is the same: a calendar that has the meeting already does"
            " not change."
        )


# --- Payments -------------------------------------------------------------------------------------


def _call_payment(form: ActionForm) -> Call:
    way, total = form.cleaned_data.get("way", ""), form.expected_amount
    if way == LINK:
        return payment_links.send_link, {"base_url": form.base_url}
    return checkout.book_draft, {
        "gateway": way,
        "reference": form.cleaned_data.get("reference", ""),
        "shown_total": form.reservation.total_cost if total is None else total,
    }


def _describe_payment(preview: ActionPreview) -> None:
    draft, way = preview.form.reservation, preview.form.cleaned_data.get("way")
    preview.expected_amount = draft.total_cost
    preview.facts += [
        ("Price", money.format_amount(draft.total_cost)),
        describe_email(draft, "with the link" if way == LINK else "with the bill"),
    ]
    if way == LINK:
        preview.confirm_label = SEND_LINK
        until = preview.result.payment_link_until
        preview.facts.append(("Held until", _format_end(draft, until)))
    _describe_way(preview, draft.user, way)


def _describe_way(preview: ActionPreview, customer: User, way: str | None) -> None:
    """Add to the preview what the way of payment means for the customer."""
    if way == ACCOUNT.name:
        owed = money.format_amount(get_owed_amount(customer))
        limit = money.format_amount(customer.credit_limit)
        preview.facts.append(("Owed so far", f"{owed} of at most {limit}"))
    elif way == SAVED_CARD:
        preview.notes.append(
            "If the bank asks the customer for a confirmation, the card is declined."
        )


def _take_payment(form: ActionForm) -> str:
    act, draft, way = form.act, form.reservation, form.cleaned_data.get("way", "")
    total = form.require_shown_amount()
    if way == LINK:
        held = payment_links.send_link(act, draft.pk, base_url=form.base_url)
        until, name = _format_end(draft, held.payment_link_until), draft.user.get_full_name()
        return f"{_describe_link_email(draft)} The room is held for {name} until {until}."
    if way == SAVED_CARD:
        booked = checkout.check_out(
            act, draft.pk, payment_method=SAVED_CARD_OF_ABSENT, shown_total=total
        )
    else:
        command, options = _call_payment(form)
        booked = command(act, draft.pk, **options)
    status = display.format_status(booked, now=act.now)
    return f"{status}. {confirmation.describe_payments(booked)}"


def _describe_link_email(reservation: Reservation) -> str:
    if not reservation.user.known_email:
        return "Copy the link from the page of the reservation."
    return "The link is sent within a minute."


def _report_link(change: BookingChange) -> str:
    """Say what becomes of a change whose payment link was sent."""
    until = _format_end(change.reservation, change.link_until)
    return (
        f"{_describe_link_email(change.reservation)} The booking changes once it is paid; what it"
        f" changes to is held until {until}."
    )


def _describe_link(preview: ActionPreview) -> None:
    change = preview.result
    preview.facts += [
        ("To", payment_links.describe_change(change)),
        ("To pay", money.format_amount(change.difference)),
        ("Held until", _format_end(preview.form.reservation, change.link_until)),
    ]


def _can_cancel_link(reservation: Reservation, *, now: dt.datetime) -> bool:
    has_change = payment_links.find_waiting_change(reservation) is not None
    return has_change or payment_links.can_cancel_links(reservation, now=now)


def _report_link_end(row: Reservation) -> str:
    left = "The room is still held." if row.is_new else "The booking is as it was."
    return f"The payment link is cancelled. {left}"


# --- Changes, whose difference is paid if they cost more (B27) ------------------------------------


def _call_amendment(form: ActionForm) -> Call:
    options = {
        "request": form.cleaned_data["change"],
        "waiver": form.cleaned_data.get("waiver", ""),
    }
    return amendments.amend, options


def _can_change_services(reservation: Reservation, *, now: dt.datetime) -> bool:
    has_begun = reservation.start <= now
    return amendments.can_reschedule(reservation, now=now) or (
        has_begun and amendments.can_add_to_bill(reservation, now=now)
    )


def _describe_amendment(preview: ActionPreview) -> None:
    row, result, now = preview.form.reservation, preview.result, preview.form.act.now
    way, old, new = preview.form.cleaned_data.get("way", ""), result.old, result.new
    is_paid = bool(way) and result.is_refused and row.is_confirmed_or_completed
    preview.facts += _describe_change(result)
    preview.expected_amount = result.new_total
    if is_paid:
        result = replace(result, charge=result.difference)
    elif preview.refusal:
        preview.problems.append(preview.refusal)
        if result.difference > 0:
            refusal = amendments.get_waiver_refusal(preview.form.act.staff, old.room, new.room)
            preview.notes += [refusal] if refusal else []
    if result.new_lines:
        preview.bill = compare_bills(result)
    if result.waived:
        preview.facts.append(("Waived", money.format_amount(result.waived)))
    moved = result.reservation
    if row.is_new:
        preview.facts.append(("Room held until", _format_end(moved, moved.hold_until)))
    elif not preview.problems:
        preview.facts.append(_describe_difference(row, result, way, now=now))
        if moved.start > now:
            preview.facts.append(("Cancellation", describe_cancellation(moved, now=now)))
        preview.facts += _describe_terms(result)
        with_link = is_paid and way == LINK
        preview.facts.append(
            describe_email(row, "with the link" if with_link else "with the change")
        )
        if with_link:
            preview.confirm_label = SEND_LINK
            until = display.format_datetime(row, differences.get_link_end(result, now=now))
            preview.facts.append(("Paid and changed, or held, until", until))
        if is_paid:
            _describe_way(preview, row.user, way)
            if way == ACCOUNT.name and (refusal := get_credit_refusal(row.user, result.charge)):
                preview.problems.append(refusal)
            preview.problems += find_missing(preview.form.cleaned_data).values()
    is_free = not result.difference and not result.waived
    # What has begun cannot be moved back.
    if old != new and is_free and not preview.problems and new.start > now:
        preview.undo = _build_undo(row, old, moved.version)


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
        return "Refund", _format_refund(result.refund)
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


def _amend(form: ActionForm) -> str:
    act, row, data = form.act, form.reservation, form.cleaned_data
    total = form.require_shown_amount()
    change, way, waiver = data["change"], data.get("way", ""), data.get("waiver", "")
    if total > row.total_cost:
        if missing := find_missing(data):
            raise InvalidRequest(missing)
        is_charged = row.is_confirmed_or_completed and not waiver
        if is_charged and way == SAVED_CARD:
            outcome = differences.change_booking(
                act, row.pk, change, SAVED_CARD_OF_ABSENT, expected_total=total
            )
            return _report_charge(outcome)
        if is_charged and way == LINK:
            waiting = payment_links.send_change_link(
                act, row.pk, change, expected_total=total, base_url=form.base_url
            )
            return _report_link(waiting)
    taken = TakenPayment(way, data["reference"]) if way in MANUAL_GATEWAYS else None
    result = amendments.amend(act, row.pk, change, waiver=waiver, taken=taken, expected_total=total)
    text = "Changed."
    if result.old != result.new:
        text = f"Rescheduled to {_describe_slot(result.new)}."
    if result.charge:
        text += f" {money.format_amount(result.charge)} {MANUAL_GATEWAYS[way].charged}."
    return text + _describe_due_refund(result.refund)


def _report_charge(outcome: ChangeOutcome) -> str:
    amount = money.format_amount(outcome.charge)
    if not outcome.is_applied:
        return (
            f"The payment of {amount} is being confirmed. The reservation is changed as soon as the"
            " gateway answers."
        )
    if not outcome.charge:
        # Another request has done it, or the recovery of this one.
        return "The reservation is like that already. Nothing more was charged."
    return f"Changed, and {amount} charged to the saved card."


# --- The actions ----------------------------------------------------------------------------------

# One command makes all changes of a booking, whichever form they are entered in.
build_amendment = partial(
    Action, call=_call_amendment, describe=_describe_amendment, execute=_amend
)

# By name, in the order in which a page offers them.
ACTIONS = {
    action.name: action
    for action in (
        Action(
            name="approve",
            label="Approve",
            icon="check_circle",
            title="Approve this request?",
            call=lambda _: (approval.confirm_or_expire, {}),
            describe=_describe_approval,
            execute=_approve,
            is_available=lambda row, *, now: row.status == Status.PENDING,
            is_primary=True,
            leads_to_next_request=True,
            email="",
        ),
        Action(
            name="decline",
            label="Decline",
            icon="block",
            title="Decline this request?",
            call=lambda it: (approval.decline, it.cleaned_data),
            describe=_describe_decline,
            report=lambda _: "Declined.",
            form_class=MessageForm,
            is_available=lambda row, *, now: row.status == Status.PENDING,
            is_dangerous=True,
            leads_to_next_request=True,
            email="",
            shows_email=True,
        ),
        Action(
            name="check-in",
            label="Check in",
            icon="how_to_reg",
            title="Has the customer arrived?",
            call=lambda _: (attendance.check_in, {}),
            report=lambda _: "Checked in.",
            is_available=attendance.can_check_in,
            is_immediate=always,
            is_primary=True,
        ),
        Action(
            name="undo-check-in",
            label="Undo check-in",
            icon="undo",
            title="Has the customer not arrived?",
            confirm_label="Undo the check-in",
            call=lambda _: (attendance.undo_check_in, {}),
            report=lambda _: "The check-in is undone.",
            is_available=lambda row, *, now: row.is_checked_in,
            is_immediate=always,
        ),
        Action(
            name="take-payment",
            label="Take payment",
            icon="point_of_sale",
            title="Take payment",
            call=_call_payment,
            describe=_describe_payment,
            execute=_take_payment,
            form_class=TakePaymentForm,
            is_available=lambda row, *, now: row.is_new and row.payable_until > now,
            is_primary=True,
        ),
        Action(
            name="send-link-again",
            label="Send payment link again",
            icon="forward_to_inbox",
            title="Send the payment link again",
            confirm_label=SEND_LINK,
            call=lambda it: (payment_links.send_change_link_again, {"base_url": it.base_url}),
            describe=_describe_link,
            report=_report_link,
            is_available=lambda row, *, now: payment_links.find_waiting_change(row) is not None,
            email="with the link",
        ),
        Action(
            name="cancel-link",
            label="Cancel payment link",
            icon="link_off",
            title="Cancel the payment link",
            call=lambda _: (payment_links.cancel_link, {}),
            report=_report_link_end,
            is_available=_can_cancel_link,
            is_immediate=always,
        ),
        build_amendment(
            name="move",
            label="Reschedule",
            icon="open_with",
            title="Reschedule to another time or room",
            form_class=MoveForm,
            is_available=amendments.can_reschedule,
        ),
        build_amendment(
            name="services",
            label="Services and guests",
            icon="room_service",
            title="Change services and guests",
            confirm_label="Change",
            form_class=ServicesForm,
            is_available=_can_change_services,
        ),
        build_amendment(
            name="extend",
            label="Extend",
            icon="more_time",
            title="Extend the meeting",
            confirm_label="Extend and take payment",
            form_class=ExtendForm,
            is_available=amendments.can_extend,
        ),
        Action(
            name="adjust",
            label="Adjust price",
            icon="price_change",
            title="Adjust the price",
            confirm_label="Adjust the price",
            call=_call_adjustment,
            describe=_describe_adjustment,
            report=_report_adjustment,
            form_class=PriceAdjustmentForm,
            permission=amendments.ADJUST_PRICE,
            is_available=lambda row, *, now: price_adjustments.can_adjust(row),
            email="with the bill",
        ),
        Action(
            name="hold",
            label="Extend hold",
            icon="lock_clock",
            title="Extend the hold of the room",
            confirm_label="Extend the hold",
            call=lambda it: (drafts.extend_hold, it.cleaned_data),
            describe=_describe_hold,
            report=lambda row: f"Held until {_format_end(row, row.hold_until)}.",
            form_class=HoldExtensionForm,
            is_available=drafts.can_extend_hold,
        ),
        Action(
            name="resend",
            label="Resend e-mail",
            icon="forward_to_inbox",
            title="Resend the last e-mail",
            confirm_label="Resend",
            call=lambda _: (resending.resend_last_email, {}),
            describe=_describe_resending,
            report=lambda message: f"“{message.subject}” will be sent within a minute.",
            is_available=lambda row, *, now: emails.get_last_email(row.pk) is not None,
        ),
        Action(
            name="no-show",
            label="No-show",
            icon="person_off",
            title="Mark as no-show?",
            confirm_label="Mark as no-show",
            call=lambda _: (attendance.mark_no_show, {}),
            describe=_describe_no_show,
            report=lambda _: "Marked as no-show.",
            is_available=_can_be_no_show,
            is_immediate=_is_no_show_immediate,
            is_dangerous=True,
        ),
        Action(
            name="undo-no-show",
            label="Undo no-show",
            icon="person",
            title="Did the customer come after all?",
            confirm_label="Undo the no-show",
            call=lambda _: (attendance.undo_no_show, {}),
            report=lambda _: "The no-show is undone.",
            is_available=lambda row, *, now: row.status == Status.NO_SHOW,
            is_immediate=always,
        ),
        Action(
            name="cancel",
            label="Cancel",
            icon="cancel",
            title="Cancel this reservation?",
            confirm_label="Cancel the reservation",
            call=lambda it: (
                cancellation.cancel,
                {**it.cleaned_data, "expected_refund": it.expected_amount},
            ),
            describe=_describe_cancellation,
            report=lambda result: result.message,
            form_class=CancellationForm,
            is_available=_can_cancel,
            is_dangerous=True,
            email="",
            shows_email=True,
        ),
    )
}
