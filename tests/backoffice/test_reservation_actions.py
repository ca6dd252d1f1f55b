"""The actions of the page of a reservation, through HTTP requests."""

import datetime as dt
import re

import pytest

from accounts.models import OutboxMessage
from payments.models import Refund
from reservations.models import PriceAdjustment, history
from reservations.models.status import Status
from reservations.notifications import emails
from tests.backoffice.reading import messages_of, words
from tests.backoffice.reservation_pages import (
    action_url,
    confirm,
    fill_slot,
    offered,
    reservation_url,
)
from tests.factories_centers import TermsFactory
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    START,
    AllowanceFactory,
    get_current_status,
    make_booking,
    make_draft,
    make_pending_booking,
    make_room,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]


def test_approve_previews_charge_before_confirmation_or_says_why_not(office):
    reservation = make_pending_booking()
    room = reservation.room

    assert "$75.00 from Visa ending 4242" in words(office.get(action_url(reservation, "approve")))
    type(room).objects.update(is_blocked=True)
    page = office.get(action_url(reservation, "approve"))
    assert "blocked by staff" in words(page)
    assert 'name="confirmed"' not in page.text
    assert messages_of(confirm(office, reservation, "approve"))[0][0] == "error"
    assert get_current_status(reservation) == Status.PENDING
    type(room).objects.update(is_blocked=False)
    done = confirm(office, reservation, "approve")
    assert messages_of(done)[-1] == ("success", f"{reservation}: Approved.")
    assert get_current_status(reservation) == Status.CONFIRMED
    assert history.get_changes(reservation)[0].actor.get_full_name() == "Root Boss"


def test_cancel_from_before_the_deadline_is_refused_after_it(office, clock):
    reservation = make_booking()
    assert "Refund $75.00 Fee $0.00" in words(office.get(action_url(reservation, "cancel")))
    clock.move_to(START - HOUR)
    office.force_login(AdministratorFactory())
    assert "Refund $0.00 Fee $75.00" in words(office.get(action_url(reservation, "cancel")))
    stale = confirm(office, reservation, "cancel", expected_amount="75.00")
    assert "The refund has changed" in messages_of(stale)[0][1]
    assert get_current_status(reservation) == Status.CONFIRMED


def test_cancel_previews_the_step_of_the_terms_and_what_comes_back(office):
    room = make_room()
    terms = room.terms = TermsFactory(center=room.center, steps="168: 100; 24: 50")
    room.save()
    customer = UserFactory()
    AllowanceFactory(user=customer, hours=1)
    reservation = make_booking(customer, room)
    terms.steps = "24: 80"
    terms.save()

    page = words(office.get(action_url(reservation, "cancel")))

    assert "Refund $25.00 Fee $25.00" in page
    assert "Terms Flexible: 100% until 168 h before, 50% until 24 h before" in page
    assert "Now Until Tue, Mar 2, 2027, 9:00 AM you get half of the price back." in page
    assert "$25.00 until Tue, Mar 2, 2027, 9:00 AM, then nothing." in page
    assert "Included hours 0.5 of 1 h are returned" in page
    page = words(office.post(action_url(reservation, "move"), fill_slot(room, START + HOUR)))
    assert "Terms when booked Flexible: 100% until" in page
    assert "Present terms Flexible: 80% until 24 h before" in page


def test_no_show_that_gives_something_back_has_a_preview_and_is_undone(office, clock):
    room = make_room()
    room.terms = TermsFactory(center=room.center, no_show_percent=80)
    room.save()
    reservation = make_booking(room=room)
    clock.move_to(reservation.end + HOUR)
    office.force_login(AdministratorFactory())

    page = words(office.get(action_url(reservation, "no-show")))
    assert "Refund $15.00 Fee $60.00" in page
    confirm(office, reservation, "no-show")
    assert Refund.objects.get().amount == 15
    assert "New status Completed" in words(office.get(action_url(reservation, "undo-no-show")))


def test_no_show_has_a_preview_until_the_end_because_it_releases_the_room(office, clock):
    reservation = make_booking()
    address = action_url(reservation, "no-show")
    found = []
    for at in (reservation.start + 5 * MINUTE, reservation.end):
        clock.move_to(at)
        office.force_login(AdministratorFactory())
        for headers in ({}, {"X-Requested-With": "fetch"}):  # the page, and the timeline's panel
            page = office.get(reservation_url(reservation), headers=headers).text
            found.append((f'href="{address}"' in page, f'action="{address}"' in page))
        found.append("Room Released at once" in words(office.get(address)))

    link, button = (True, False), (False, True)
    assert found == [link, link, True, button, button, False]


def test_adjust_price_of_draft(office):
    reservation = make_draft()
    typed = {"amount": "-5.00", "reason": "Kind"}

    shown = office.post(action_url(reservation, "adjust"), typed)

    assert "$70.00" in words(shown)
    assert not PriceAdjustment.objects.exists()
    confirm(office, reservation, "adjust", **typed, expected_amount="70.00")
    reservation.refresh_from_db()
    assert reservation.total_cost == 70
    assert PriceAdjustment.objects.get().by.get_full_name() == "Root Boss"


@pytest.mark.parametrize(("make", "amount"), [(make_draft, "-1000"), (make_booking, "-50")])
def test_adjust_price_confirmed_twice_applies_once(office, make, amount):
    reservation = make()
    typed = {"amount": amount, "reason": "Kind"}
    shown = office.post(action_url(reservation, "adjust"), typed)
    sums = dict(re.findall(r'name="(expected_version|expected_amount)" value="(.+?)"', shown.text))
    assert sums["expected_version"] == "0"

    first, second = (confirm(office, reservation, "adjust", **typed, **sums) for _ in range(2))

    assert messages_of(first)[0][0] == "success"
    level, text = messages_of(second)[-1]
    assert level == "error"
    assert "It was changed meanwhile" in text
    assert "Nothing was changed now" in text
    assert PriceAdjustment.objects.count() == 1
    reservation.refresh_from_db()
    assert reservation.total_cost == max(75 + int(amount), 0)


def test_adjust_price_invalid_amount_or_expected_amount_is_refused(office):
    reservation = make_draft()
    for amount, message in (
        ("0", "must not be 0"),
        ("100001", "less than or equal to 100000"),
        ("-100001", "greater than or equal to -100000"),
        ("1.001", "no more than 2 decimal places"),
        ("lots", "Enter a number"),
    ):
        response = confirm(office, reservation, "adjust", amount=amount, reason="x")
        assert message in words(response), amount
    for name, refusal in (
        ("expected_version", "It was changed meanwhile"),
        ("expected_amount", "The price has changed"),
    ):
        for text in ("", "x", "²", "-1", "NaN", "sNaN", "-Infinity", "1e999"):
            typed = {"amount": "-5", "reason": "Kind", name: text}
            done = confirm(office, reservation, "adjust", **typed)
            assert refusal in messages_of(done)[-1][1], (name, text)
    assert not PriceAdjustment.objects.exists()


def test_extend_hold_sets_new_end_and_is_not_offered_at_the_latest_possible(office, staff):
    reservation = make_draft(start=NOW + 4 * HOUR)
    assert "hold" in offered(office, reservation)
    typed = {"until_0": "2027-03-01", "until_1": "13:00"}

    shown = words(office.post(action_url(reservation, "hold"), typed))
    confirm(office, reservation, "hold", **typed)

    assert "Then held until Mon 2027-03-01 13:00" in shown
    reservation.refresh_from_db()
    assert reservation.hold_until == reservation.start
    by_staff = make_draft(created_by=staff("Desk"))
    assert by_staff.hold_until == NOW + 24 * HOUR
    for each in (reservation, by_staff):
        assert "hold" not in offered(office, each)
    assert messages_of(confirm(office, by_staff, "hold"))[0][0] == "error"


def test_extend_hold_proposes_latest_time_possible(office, clock):
    clock.move_to(NOW + dt.timedelta(seconds=40))
    long_away, soon = make_draft(), make_draft(start=NOW + 4 * HOUR)

    def proposed(reservation):
        page = office.get(action_url(reservation, "hold"))
        return page.context["form"].initial["until"].isoformat()

    assert proposed(long_away) == "2027-03-02T09:00:00"
    assert proposed(soon) == "2027-03-01T13:00:00"


def test_extend_hold_after_it_expired_is_offered_while_room_is_available(office, clock):
    reservation = make_draft()
    clock.move_to(NOW + HOUR)
    assert "hold" in offered(office, reservation)

    make_draft(UserFactory(), reservation.room, now=NOW + HOUR)

    assert "hold" not in offered(office, reservation)


def test_resend_queues_last_email(office):
    reservation = make_booking()
    assert "already waiting to be sent" in words(office.get(action_url(reservation, "resend")))
    OutboxMessage.objects.update(state="sent", sent_at=NOW, next_attempt_at=None)

    shown = words(office.get(action_url(reservation, "resend")))
    confirm(office, reservation, "resend")

    assert reservation.user.email in shown
    assert OutboxMessage.objects.about(emails.get_subject_key(reservation.pk)).count() == 2
    assert history.get_changes(reservation)[0].changes == {
        "e-mail": [None, "confirmed, sent again"]
    }
