"""The actions on the page of a reservation: what each previews, does once, and refuses (B18)."""

from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from django.contrib import auth
from django.urls import reverse

from accounts.act import Act
from accounts.models import OutboxMessage
from payments.gateways import declines
from payments.models import Payment, Refund
from reservations.booking.price_adjustments import adjust_price
from reservations.models import (
    AllowanceEntry,
    PriceAdjustment,
    RefundOverride,
    Reservation,
    history,
)
from reservations.models.status import Status
from tests.backoffice.reading import get_hidden_fields, messages_of, words
from tests.backoffice.reservation_pages import (
    DAY,
    action_url,
    confirm,
    fill_slot,
    offered,
    reservation_url,
)
from tests.factories_centers import TermsFactory
from tests.factories_people import AdministratorFactory, SavedCardFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    AllowanceFactory,
    PromoCodeFactory,
    get_current_status,
    make_booking,
    make_draft,
    make_pending_booking,
    make_room,
    pay,
    update_promo_code,
)
from tests.reservations.rescheduling_helpers import make_room_at_rate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

REFUND = {"everything": "on", "reason": "The heating is broken.", "message": "We are <sorry>."}


def make_late_booking():
    """Of which the policy refunds nothing any more."""
    return make_booking(start=NOW + HOUR, now=NOW - HOUR)


def make_booking_with_card():
    booking = make_booking()
    SavedCardFactory(user=booking.user)
    return booking


def make_booking_whose_email_was_sent():
    booking = make_booking()
    OutboxMessage.objects.update(state="sent", sent_at=NOW, next_attempt_at=None)
    return booking


def make_meeting_of_yesterday():
    """A no-show costs four fifths."""
    room = make_room()
    room.terms = TermsFactory(center=room.center, no_show_percent=80)
    room.save()
    return make_booking(room=room, start=NOW - DAY, now=NOW - 2 * DAY)


def make_request_for_blocked_room():
    request = make_pending_booking()
    type(request.room).objects.update(is_blocked=True)
    return request


def make_draft_on_account(limit=75):
    return make_draft(UserFactory(credit_limit=limit))


def make_draft_with_card(**card):
    return make_draft(SavedCardFactory(**card).user)


def make_draft_whose_bank_asks():
    return make_draft_with_card(outcome="requires_action", saved_by_setup=True)


def make_free_draft():
    draft = make_draft()
    act = Act(AdministratorFactory(), NOW, is_staff=True)
    adjust_price(act, draft.pk, amount=Decimal(-75), reason="Guest")
    draft.refresh_from_db()
    return draft


def move_to(hourly, start=START, **more):
    """Move it to a room of its center with this price of an hour."""
    return lambda row: fill_slot(make_room_at_rate(row.room, hourly), start, **more)


def get_state(row):
    """All columns of a reservation, and its payments with what is refunded of each."""
    money = [
        (
            each.gateway,
            each.reference if each.is_manual else "",
            each.amount,
            sum(refund.amount for refund in each.refunds.all()),
        )
        for each in row.payments.order_by("pk")
    ]
    return Reservation.objects.filter(pk=row.pk).values().get(), money


CARD = ("sandbox", "", 75, 0)
RETURNED = ("sandbox", "", 75, 75)


class Case(NamedTuple):
    """A reservation and what is entered; what the preview shows and the message says; the result.

    ``changed`` are the columns that differ then, ``money`` are the payments.
    """

    make: Any
    typed: Any = {}
    shown: Any = ()
    told: str = ""
    changed: Any = {}
    money: Any = ()


# By the name of the action, and what is particular.
DONE = {
    "approve": Case(
        make_pending_booking,
        shown=["Charge $75.00 from Visa ending 4242"],
        told="Approved.",
        changed={"status": "Confirmed"},
        money=[CARD],
    ),
    "decline": Case(
        make_pending_booking,
        {"message": "We are <sorry>."},
        shown=["Released $75.00 on Visa ending 4242", "Subject: Declined:", "We are <sorry>."],
        told="Declined.",
        changed={"status": "Declined"},
        money=[CARD],
    ),
    "cancel in time": Case(
        make_booking,
        shown=["Refund $75.00 Fee $0.00"],
        told="$75.00 is refunded to Visa ending 4242.",
        changed={"status": "Cancelled"},
        money=[RETURNED],
    ),
    "cancel with all refunded": Case(
        make_late_booking,
        REFUND,
        shown=["Refund $75.00 Fee $0.00 By the policy $0.00", "Subject: Cancelled: Boardroom at"],
        told="$75.00 is refunded to Visa ending 4242.",
        changed={"status": "Cancelled"},
        money=[RETURNED],
    ),
    "no-show": Case(
        make_meeting_of_yesterday,
        shown=["Refund $15.00 Fee $60.00"],
        told="Marked as no-show.",
        changed={"status": "NoShow", "holds_slot": False},
        money=[("sandbox", "", 75, 15)],
    ),
    "move to a cheaper room": Case(
        make_booking,
        move_to(15, START + DAY),
        shown=["$75.00", "-$30.00", "Refund $30.00"],
        told="$30.00 will be refunded.",
        changed={"total_cost": 45, "start": START + DAY},
        money=[("sandbox", "", 75, 30)],
    ),
    "move without paying more": Case(
        make_booking,
        move_to(40, waiver="Leak"),
        shown=["Adjustment: Leak", "Waived $45.00"],
        told="Rescheduled to ",
        changed={"total_cost": 75},
        money=[CARD],
    ),
    "adjust": Case(
        make_booking,
        {"amount": "-50", "reason": "Kind"},
        shown=["Refund $50.00"],
        told="$50.00 will be refunded.",
        changed={"total_cost": 25},
        money=[("sandbox", "", 75, 50)],
    ),
    "hold": Case(
        lambda: make_draft(start=NOW + 4 * HOUR),
        {"until_0": "2027-03-01", "until_1": "13:00"},
        shown=["Then held until Mon 2027-03-01 13:00"],
        told="Held until Mon 2027-03-01 13:00",
        changed={"hold_until": NOW + 4 * HOUR},
    ),
    "resend": Case(
        make_booking_whose_email_was_sent,
        shown=["E-mail to ada", "Subject: "],
        told="will be sent within a minute.",
        money=[CARD],
    ),
    "take-payment in cash": Case(
        make_draft,
        {"way": "cash"},
        shown=["New status Confirmed", "Price $75.00"],
        told="Confirmed. $75.00 was paid in cash.",
        changed={"status": "Confirmed"},
        money=[("cash", "", 75, 0)],
    ),
    "take-payment on account": Case(
        make_draft_on_account,
        {"way": "account", "reference": "PO 9"},
        shown=["$0.00 of at most $75.00"],
        told="Confirmed.",
        changed={"status": "Confirmed"},
        money=[("account", "PO 9", 75, 0)],
    ),
    "take-payment of nothing": Case(
        make_free_draft,
        shown=["Price $0.00"],
        told="Confirmed. There was nothing to pay.",
        changed={"status": "Confirmed"},
    ),
    "take-payment by a link": Case(
        make_draft,
        {"way": "link"},
        shown=["with the link", "Held until", "Send payment link"],
        told="The link is sent within a minute.",
        changed={"status": "New"},
    ),
}


@pytest.mark.parametrize("name", DONE)
def test_action_does_once_what_its_preview_shows(office, name):
    case, action = DONE[name], name.split()[0]
    reservation = case.make()
    url = action_url(reservation, action)
    assert action in offered(office, reservation)
    before = get_state(reservation)

    page = office.post(url, case.typed(reservation) if callable(case.typed) else case.typed)

    text = words(page)
    assert [each for each in case.shown if each not in text] == [], text
    assert get_state(reservation) == before
    # A double click.
    first, second = (office.post(url, get_hidden_fields(page)) for _ in range(2))
    level, message = messages_of(first)[-1]
    assert (level, case.told in message) == ("success", True), message
    assert messages_of(second)[-1][0] == "error" or "link" in name
    row, money = get_state(reservation)
    assert (row | case.changed, money) == (row, list(case.money))
    assert not reservation.notes.exists()
    assert auth.get_user(office) in {each.actor for each in history.get_changes(reservation)}
    if email := page.context["preview"].email:
        assert email.text == OutboxMessage.objects.latest("pk").text


DEAR = move_to(40)
STALE = "It was changed meanwhile"
NO_AMOUNTS = ("", "²", "sNaN", "1e999")
# The action, with which reservation, what is entered, and what is said.
REFUSED = [
    ("approve", make_request_for_blocked_room, {}, "blocked by staff"),
    ("cancel", make_late_booking, {"refund": "75.01", "reason": "x"}, "Between 0 and $75.00"),
    ("cancel", make_late_booking, {"refund": "75.00"}, "the policy does not give needs a reason"),
    ("cancel", make_late_booking, {"message": "x" * 1001}, "this value has at most 1000"),
    ("cancel", make_late_booking, {"expected_amount": "75.00"}, "The refund has changed"),
    ("move", make_booking, DEAR, "$45.00 more"),
    ("move", make_booking, move_to(40, expected_amount="120.00"), "$45.00 more"),
    ("resend", make_booking, {}, "already waiting to be sent"),
    *(
        ("adjust", make_draft, {"amount": amount, "reason": "x"}, said)
        for amount, said in (
            ("0", "must not be 0"),
            ("100001", "less than or equal to 100000"),
            ("1.001", "no more than 2 decimal places"),
        )
    ),
    *(
        ("adjust", make_draft, {"amount": "-5", "reason": "Kind", name: text}, said)
        for name, said in (("expected_version", STALE), ("expected_amount", "price has changed"))
        for text in NO_AMOUNTS
    ),
    ("take-payment", make_draft, {"way": "terminal", "reference": " . "}, "of the terminal"),
    (
        *("take-payment", make_draft),
        *({"way": "cash", "expected_version": "0"}, "amount that you have seen is missing"),
    ),
    (
        *("take-payment", make_draft),
        *({"way": "cash", "expected_amount": "70.00"}, "The price has changed"),
    ),
    ("take-payment", make_draft, {"way": "account"}, "Select a valid choice"),
    (
        *("take-payment", lambda: make_draft_on_account(50)),
        *({"way": "account", "expected_amount": "75.00"}, "Choose another way"),
    ),
    ("take-payment", make_draft_with_card, {"way": "card"}, "Ask the customer first"),
    (
        *("take-payment", make_draft_whose_bank_asks),
        {"way": "card", "consent": "on", "expected_amount": "75.00"},
        "bank asks the customer for a confirmation. Nothing was charged",
    ),
]


@pytest.mark.parametrize(
    ("name", "make", "typed", "said"),
    REFUSED,
    ids=[f"{name} {number}" for number, (name, *_) in enumerate(REFUSED)],
)
def test_action_that_is_refused_says_why_and_changes_nothing(office, name, make, typed, said):
    reservation = make()
    typed = typed(reservation) if callable(typed) else typed
    row, money = get_state(reservation)

    preview = office.post(action_url(reservation, name), typed)
    is_possible_as_shown = any(each.startswith("expected") for each in typed)
    assert is_possible_as_shown or 'name="confirmed"' not in preview.text
    done = confirm(office, reservation, name, **typed)

    text = words(done) if done.status_code == 200 else messages_of(done)[-1][1]
    assert said in text or said in words(preview)
    assert declines.REQUIRES_ACTION not in text
    reservation.refresh_from_db()
    columns = ("status", "total_cost", "room_id", "start", "end")
    assert {each: getattr(reservation, each) for each in columns} == {
        each: row[each] for each in columns
    }
    assert Payment.objects.exclude(state="declined").count() == len(money)
    assert not Refund.objects.exists()
    assert not PriceAdjustment.objects.exists()


# --- What is particular to one of them ------------------------------------------------------------


def test_refund_by_decision_is_on_the_page_and_in_the_report_with_its_author(office):
    booking = make_late_booking()
    confirm(office, booking, "cancel", expected_amount="75.00", **REFUND)

    page = words(office.get(reservation_url(booking)))
    assert "$75.00 instead of $0.00, by Root Boss" in page
    report = reverse("admin:reservations_report", args=["discounts"])
    table = words(office.get(report, {"since": "2027-03-01", "until": "2027-03-31"}))
    assert "The heating is broken. Root Boss $0.00 $75.00" in table


def test_cancellation_by_decision_returns_the_hours_of_a_booking_that_was_not_charged(office):
    room, ada = make_room(), UserFactory()
    room.terms = TermsFactory(center=room.center)
    room.save()
    AllowanceFactory(user=ada, hours=3)
    booking = make_booking(ada, room, start=NOW + HOUR, now=NOW - HOUR)
    form = office.get(action_url(booking, "cancel")).context["form"]
    assert list(form.fields) == ["everything", "reason", "message"]

    confirm(office, booking, "cancel", expected_amount="0.00", **REFUND)

    assert [each.hours for each in AllowanceEntry.objects.order_by("pk")] == [-3, 3]
    assert RefundOverride.objects.get().reason == REFUND["reason"]


def test_cancellation_by_decision_can_return_a_promo_code_that_paid_for_everything(office):
    PromoCodeFactory(code="ALL", percent=100)
    room = make_room()
    room.terms = TermsFactory(center=room.center)
    room.save()
    draft = make_draft(room=room, start=NOW + HOUR, now=NOW - HOUR)
    update_promo_code(draft.pk, "ALL", user=draft.user, now=NOW - HOUR)
    booking = pay(draft, now=NOW - HOUR)
    form = office.get(action_url(booking, "cancel")).context["form"]
    assert list(form.fields) == ["everything", "reason", "message"]


def test_desk_cancels_by_the_policy_with_a_message(client, staff):
    booking = make_late_booking()
    client.force_login(staff("Desk"))
    form = client.get(action_url(booking, "cancel")).context["form"]
    assert list(form.fields) == ["message"]

    confirm(client, booking, "cancel", expected_amount="0.00", **REFUND)

    assert get_current_status(booking) == Status.CANCELLED
    assert not Refund.objects.exists()
    assert not RefundOverride.objects.exists()
    assert "We are <sorry>." in OutboxMessage.objects.get(kind="cancelled").text


def test_no_show_has_a_preview_until_the_end_because_it_releases_the_room(office, wait_until):
    reservation = make_booking()
    address = action_url(reservation, "no-show")
    found = []
    for at in (reservation.start + 5 * MINUTE, reservation.end):
        wait_until(at)
        for headers in ({}, {"X-Requested-With": "fetch"}):  # the page, and the timeline's panel
            page = office.get(reservation_url(reservation), headers=headers).text
            found.append((f'href="{address}"' in page, f'action="{address}"' in page))
        found.append("Room Released at once" in words(office.get(address)))

    link, button = (True, False), (False, True)
    assert found == [link, link, True, button, button, False]


def test_saved_card_is_charged_and_the_consent_is_in_the_history(office):
    draft, booking = make_draft_with_card(), make_booking_with_card()
    typed = {"way": "card", "consent": "on"}
    confirm(office, draft, "take-payment", **typed, expected_amount="75.00")
    confirm(office, booking, "move", **move_to(40)(booking), **typed, expected_amount="120.00")

    assert get_state(draft)[1] == [CARD]
    assert get_state(booking)[1] == [CARD, ("sandbox", "", 45, 0)]
    for reservation in (draft, booking):
        [entry] = history.get_changes(reservation).filter(changes__has_key="consent_to_charge")
        assert entry.changes["consent_to_charge"] == [None, "Visa ending 4242"]
        assert entry.actor.get_full_name() == "Root Boss"
    charged = history.get_changes(booking).get(changes__has_key="charge")
    assert charged.changes["charge"] == [None, "$45.00 (Visa ending 4242)"]


def test_slip_of_a_refused_payment_is_kept_in_a_note(office):
    """The terminal has charged already."""
    draft, booking = make_draft(), make_booking()
    slip = {"way": "terminal", "reference": "17"}

    done = confirm(office, draft, "take-payment", **slip, expected_amount="70.00")
    # It lasts that long already, because a colleague was faster.
    page = confirm(office, booking, "extend", end_0="2027-03-03", end_1="12:00", **slip)

    level, text = messages_of(done)[-1]
    assert (level, "A note keeps the number of the slip" in text) == ("error", True)
    assert "A note keeps the number of the slip" in words(page)
    refused = "Card terminal, slip 17: it was entered when “Take payment” was refused."
    assert (draft.notes.get().text, "slip 17" in booking.notes.get().text) == (refused, True)
    confirm(office, draft, "take-payment", **slip, expected_amount="75.00")
    confirm(office, booking, "check-in", **slip)  # takes no payment
    paid = Payment.objects.get(gateway="terminal")
    assert (paid.amount, paid.reference, draft.notes.count()) == (75, "17", 1)
    assert booking.notes.count() == 1
