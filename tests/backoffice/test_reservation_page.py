"""The page of a reservation and its actions, through HTTP requests."""

import datetime as dt
import re
from decimal import Decimal
from html import unescape

import pytest
from django.urls import reverse

from accounts.models import CenterRole, OutboxMessage
from centers.models import MeetingRoom
from payments.models import Refund
from reservations.admin.actions import ACTIONS
from reservations.booking import approval, checkout, price_adjustments
from reservations.booking.drafts import apply_promo_code
from reservations.models import PriceAdjustment, Reservation, history
from reservations.models.status import Status
from reservations.notifications import emails
from tests.backoffice.counting import queries_of
from tests.backoffice.reading import messages_of, words
from tests.factories_centers import MeetingRoomFactory, RateFactory
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    AllowanceFactory,
    PromoCodeFactory,
    ReservationFactory,
    get_current_status,
    make_booking,
    make_draft,
    make_payment_method,
    make_pending_booking,
    make_room,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

LIST = reverse("admin:reservations_reservation_changelist")
DAY = dt.timedelta(days=1)


def reservation_url(reservation):
    return reverse("admin:reservations_reservation_change", args=[reservation.pk])


def action_url(reservation, name):
    return reverse("admin:reservations_reservation_action", args=[reservation.pk, name])


def confirm(office, reservation, name, **typed):
    return office.post(action_url(reservation, name), {"confirmed": "yes", **typed})


def offered(office, reservation):
    return [action.name for action in office.get(reservation_url(reservation)).context["actions"]]


def to(room, start=START, hours=3, **more):
    local = start - 7 * HOUR  # Denver, in winter
    end = local + hours * HOUR
    return {
        "room": room.pk,
        "start_0": f"{local:%Y-%m-%d}",
        "start_1": f"{local:%H:%M}",
        "end_0": f"{end:%Y-%m-%d}",
        "end_1": f"{end:%H:%M}",
        **more,
    }


def at_rate(room, hourly):
    rate = RateFactory(center=room.center, hourly=Decimal(hourly), half_day=None, full_day=None)
    return MeetingRoomFactory(center=room.center, rate=rate, name=f"At {hourly}")


# --- The page -----------------------------------------------------------------------------------


def test_reservation_page_shows_booking_payment_emails_and_history(office):
    ada = UserFactory()
    AllowanceFactory(user=ada, hours=1, description="Plan B")
    PromoCodeFactory(code="TEN")
    reservation = make_draft(ada, attendees=[{"name": "Grace Hopper"}])
    apply_promo_code(reservation.pk, "TEN", user=ada, now=NOW)
    checkout.check_out(reservation.pk, user=ada, payment_method=make_payment_method(), now=NOW)
    price_adjustments.adjust_price(
        reservation.pk, amount=Decimal(-5), reason="Projector broke", by=ada, now=NOW
    )

    page = words(office.get(reservation_url(reservation)))

    for text in (
        *("Confirmed", "Wed 2027-03-03 09:00 - 12:00 MST"),
        *("Glenarm", "Ada Lovelace", ada.email, "Grace Hopper", "Boardroom, 3 hours"),
        *("Plan B", "Promo code TEN", "Adjustment: Projector broke", "$40.00", "Visa ending 4242"),
        *("Captured", "Refund", "Done", "Price reduced by $5.00"),
        *("Price changed", "Waiting", "Draft → Processing", "Processing → Confirmed"),
        *("Total: $45.00 → $40.00", "the customer", "Mon 2027-03-01 09:00"),
    ):
        assert text in page, text


def test_reservation_page_links_to_timeline(office):
    # The evening before in Denver.
    late = START.replace(hour=3)
    reservation = ReservationFactory(room=make_room(), start=late, end=late + HOUR)
    day = f"{reverse('admin:reservations_timeline')}?center={reservation.room.center_id}"

    page = unescape(office.get(reservation_url(reservation)).text)

    assert f'href="{day}&date=2027-03-02" title="Timeline of this day"' in page


def test_reservation_page_test_payment_is_marked(office):
    reservation = make_booking()
    assert "Test: no money was moved." in words(office.get(reservation_url(reservation)))

    reservation.payments.update(is_live=True)
    assert "Test payment" not in words(office.get(reservation_url(reservation)))
    assert "Test payment" not in words(office.get(reservation_url(make_draft())))


def test_reservation_page_post_is_refused(office):
    reservation = make_draft()
    _, main = office.get(reservation_url(reservation)).content.decode().split('class="reservation"')

    assert not re.search(r"<(input|select|textarea|form)", main.rsplit("</section>", 1)[0])
    assert office.post(reservation_url(reservation), {"status": "Confirmed"}).status_code == 405
    assert get_current_status(reservation) == Status.NEW


@pytest.mark.parametrize("pk", ["²", "abc", "9" * 30, "0"])
def test_unknown_reservation_redirects_to_dashboard(office, pk):
    assert office.get(f"/admin/reservations/reservation/{pk}/change/").status_code == 302
    assert office.get(f"/admin/reservations/reservation/{pk}/step/move/").status_code == 404


def test_unknown_action_is_not_found(office):
    answer = office.get(action_url(make_draft(), "teleport"))
    assert answer.status_code == 404
    assert '<a href="/admin/">Go to the dashboard</a>' in answer.text


def test_reservation_page_query_count_is_constant(office):
    quiet, busy = make_booking(), make_booking()
    for number in range(30):
        price_adjustments.adjust_price(
            busy.pk, amount=Decimal(-1), reason=f"No. {number}", by=busy.user, now=NOW
        )

    few, more = (
        queries_of(office, reservation_url(quiet)),
        queries_of(office, reservation_url(busy)),
    )

    # One more, which loads the refunds.
    assert more <= few + 1


def test_history_names_who_approved(office):
    reservation = make_pending_booking()
    approval.approve(reservation.pk, by=reservation.user, now=NOW)
    assert "the customer" in words(office.get(reservation_url(reservation)))


# --- What is offered ----------------------------------------------------------------------------


def test_reservation_page_offers_available_actions(office, clock):
    assert offered(office, make_draft()) == ["move", "adjust", "hold", "cancel"]
    assert offered(office, make_pending_booking()) == [
        "approve",
        "decline",
        "move",
        "resend",
        "cancel",
    ]
    confirmed = make_booking()
    assert offered(office, confirmed) == ["move", "adjust", "resend", "cancel"]
    for status in (Status.DECLINED, Status.CANCELLED, Status.EXPIRED, Status.PROCESSING):
        assert offered(office, ReservationFactory(status=status)) == []
    clock.move_to(START + HOUR)
    office.force_login(AdministratorFactory())  # a session ends with the working day
    assert offered(office, confirmed) == ["adjust", "resend", "no-show"]


@pytest.mark.parametrize("name", list(ACTIONS))
@pytest.mark.parametrize("status", [Status.CANCELLED, Status.PROCESSING, Status.EXPIRED])
def test_unavailable_action_is_refused(office, status, name):
    row = ReservationFactory(status=status)
    before = Reservation.objects.filter(pk=row.pk).values().get()

    response = confirm(office, row, name, amount="-5", reason="x", expected_amount="1")

    assert response.url == reservation_url(row)
    [(level, text)] = messages_of(response)
    assert level == "error"
    assert "Nothing was changed." in text
    assert Reservation.objects.filter(pk=row.pk).values().get() == before
    assert not history.get_changes(row).exists()


def test_overrun_of_running_meeting_is_booked_by_new_reservation(client, office, staff, clock):
    reservation = make_booking(number_of_attendees=3)
    page = reservation_url(reservation)
    assert not office.get(page).context["overrun_url"]
    clock.move_to(START + HOUR)
    office.force_login(AdministratorFactory())

    assert "Book overrun" in words(office.get(page))
    form = office.get(office.get(page).context["overrun_url"]).context["form"]
    assert {name: form.initial[name] for name in ("room", "number_of_attendees", "user")} == {
        "room": reservation.room_id,
        "number_of_attendees": 3,
        "user": reservation.user.email,
    }
    assert f"{form.initial['start']:%m-%d %H:%M}" == "03-03 12:00"
    assert f"{form.initial['end']:%m-%d %H:%M}" == "03-03 12:30"

    client.force_login(staff("Viewer", reservation.room.center))
    assert "Book overrun" not in words(client.get(page))


def test_overrun_is_not_offered_when_impossible(office, clock):
    reservation, cancelled = make_booking(), ReservationFactory(status=Status.CANCELLED)
    clock.move_to(START + HOUR)
    office.force_login(AdministratorFactory())
    assert not office.get(reservation_url(cancelled)).context["overrun_url"]
    MeetingRoom.objects.filter(pk=reservation.room_id).update(turnaround_minutes=15)
    assert not office.get(reservation_url(reservation)).context["overrun_url"]
    MeetingRoom.objects.filter(pk=reservation.room_id).update(turnaround_minutes=0)
    clock.move_to(reservation.end)
    assert not office.get(reservation_url(reservation)).context["overrun_url"]


# --- Each action ----------------------------------------------------------------------------------


def test_approve_previews_charge_before_confirmation(office):
    reservation = make_pending_booking()

    preview = words(office.get(action_url(reservation, "approve")))

    assert "$75.00 from Visa ending 4242" in preview
    assert get_current_status(reservation) == Status.PENDING
    done = confirm(office, reservation, "approve")
    assert messages_of(done) == [("success", f"{reservation}: Approved.")]
    assert get_current_status(reservation) == Status.CONFIRMED
    assert history.get_changes(reservation)[0].actor.get_full_name() == "Root Boss"


def test_approve_impossible_shows_reason(office):
    reservation = make_pending_booking()
    reservation.room.is_blocked = True
    reservation.room.save()

    page = office.get(action_url(reservation, "approve"))

    assert "blocked by staff" in words(page)
    assert 'name="confirmed"' not in page.content.decode()
    assert messages_of(confirm(office, reservation, "approve"))[0][0] == "error"
    assert get_current_status(reservation) == Status.PENDING


def test_decline_previews_released_amount(office):
    reservation = make_pending_booking()

    assert "$75.00 on Visa ending 4242" in words(office.get(action_url(reservation, "decline")))
    confirm(office, reservation, "decline")
    assert get_current_status(reservation) == Status.DECLINED


def test_cancel_previews_fee_and_refund(office, clock):
    reservation = make_booking()

    early = words(office.get(action_url(reservation, "cancel")))
    clock.move_to(START - HOUR)
    office.force_login(AdministratorFactory())
    late = words(office.get(action_url(reservation, "cancel")))

    assert "Refund $75.00" in early
    assert "Fee $0.00" in early
    assert "Refund $0.00" in late
    assert "Fee $75.00" in late
    # A preview from before the deadline is refused after it.
    stale = confirm(office, reservation, "cancel", expected_amount="75.00")
    assert "The refund has changed" in messages_of(stale)[0][1]
    assert get_current_status(reservation) == Status.CONFIRMED
    confirm(office, reservation, "cancel", expected_amount="0.00")
    assert get_current_status(reservation) == Status.CANCELLED
    assert not Refund.objects.exists()


def test_no_show_marks_reservation(office, clock):
    reservation = make_booking()
    clock.move_to(START + HOUR)
    office.force_login(AdministratorFactory())

    confirm(office, reservation, "no-show")

    assert get_current_status(reservation) == Status.NO_SHOW


def test_reschedule_previews_bill_and_executes(office):
    reservation = make_booking()
    cheap = at_rate(reservation.room, 15)

    shown = office.post(action_url(reservation, "move"), to(cheap, START + DAY))

    text = words(shown)
    assert "$75.00" in text
    assert "-$30.00" in text
    assert "Refund $30.00" in text
    assert shown.context["preview"].expected_amount == 45
    assert reservation.room == Reservation.objects.get().room
    sent = dict(shown.context["submitted"])
    assert sent == {key: str(value) for key, value in to(cheap, START + DAY).items()}
    done = confirm(office, reservation, "move", **sent, expected_amount="45.00")
    assert messages_of(done)[0][0] == "success"
    reservation.refresh_from_db()
    assert (reservation.room, reservation.start, reservation.total_cost) == (
        *(cheap, START + DAY, 45),
    )


def test_reschedule_more_expensive_needs_waiver(office):
    reservation = make_booking()
    expensive = at_rate(reservation.room, 40)

    refused = office.post(action_url(reservation, "move"), to(expensive))
    waived = office.post(action_url(reservation, "move"), to(expensive, waiver="Leak"))

    assert "$45.00 more" in words(refused)
    assert 'name="confirmed"' not in refused.content.decode()
    assert 'name="confirmed"' in waived.content.decode()
    assert "Adjustment: Leak" in words(waived)
    forced = confirm(office, reservation, "move", **to(expensive))
    assert "$45.00 more" in messages_of(forced)[0][1]


def test_waiver_requires_price_adjustment_permission(client, staff):
    reservation = make_booking()
    expensive = at_rate(reservation.room, 40)
    client.force_login(staff("Desk", reservation.room.center))

    confirm(client, reservation, "move", **to(expensive, waiver="Please"))

    reservation.refresh_from_db()
    assert reservation.total_cost == 75
    assert reservation.room != expensive
    assert "waiver" not in client.get(action_url(reservation, "move")).context["form"].fields


@pytest.mark.parametrize("manages", ["old", "new"])
def test_waiver_requires_permission_at_both_centers(client, staff, groups, manages):
    reservation, expensive = make_booking(), at_rate(make_room(name="Theirs"), 40)
    expensive.center.name = "Far away"
    expensive.center.save()
    centers = {"old": reservation.room.center, "new": expensive.center}
    someone = staff("Desk", *centers.values())
    role = CenterRole.objects.create(user=someone, center=centers[manages], group=groups["Manager"])
    client.force_login(someone)
    typed = to(expensive, waiver="Leak")

    noted = client.post(action_url(reservation, "move"), to(expensive))
    pages = [
        client.post(action_url(reservation, "move"), typed),
        confirm(client, reservation, "move", **typed, expected_amount="75.00"),
    ]

    [lacking] = [center.name for name, center in centers.items() if name != manages]
    refusal = f"Only who may adjust prices at {lacking} can waive the difference."
    assert refusal in words(noted)
    for page in pages:
        assert page.context["form"].errors == {"waiver": [refusal]}
        assert refusal in words(page)
    assert Reservation.objects.get().room == reservation.room

    role.delete()
    for center in centers.values():
        CenterRole.objects.create(user=someone, center=center, group=groups["Manager"])
    confirm(client, reservation, "move", **typed, expected_amount="75.00")
    reservation.refresh_from_db()
    assert (reservation.room, reservation.total_cost) == (expensive, 75)


def test_reschedule_live_preview_is_a_fragment(office):
    reservation = make_booking()

    fragment = office.post(
        action_url(reservation, "move"),
        to(at_rate(reservation.room, 15)),
        headers={"X-Requested-With": "fetch"},
    )

    html = fragment.content.decode()
    assert "<html" not in html
    assert "-$30.00" in html
    assert 'name="csrfmiddlewaretoken"' in html


def test_reschedule_room_suggestions_name_centers(office, django_assert_max_num_queries):
    reservation = make_booking()
    for _ in range(5):
        MeetingRoomFactory(name="Boardroom")
    box = reverse("admin:autocomplete")
    query = {
        "app_label": "reservations",
        "model_name": "reservation",
        "field_name": "room",
        "term": "board",
    }
    office.get(box, query)

    with django_assert_max_num_queries(6):  # however many rooms there are
        suggested = [each["text"] for each in office.get(box, query).json()["results"]]

    assert len(suggested) == 6
    assert "Boardroom, Glenarm" in suggested
    assert "Boardroom, Glenarm" in words(office.get(action_url(reservation, "move")))


@pytest.mark.parametrize(
    "typed",
    [
        {},
        {"room": "abc", "start_0": "x"},
        {"room": "9" * 30},
        {"room": "1", "start_0": "9999-12-31", "start_1": "09:00"},
    ],
)
def test_reschedule_invalid_data_shows_errors(office, typed):
    reservation = make_booking()

    for data in (typed, {**typed, "confirmed": "yes", "expected_amount": "NaN?"}):
        page = office.post(action_url(reservation, "move"), data)
        assert page.status_code == 200
        assert page.context["form"].errors
    reservation.refresh_from_db()
    assert reservation.start == START


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


@pytest.mark.parametrize("make", [make_draft, make_booking])
@pytest.mark.parametrize("amount", ["-50", "-1000"])
def test_adjust_price_confirmed_twice_applies_once(office, make, amount):
    reservation = make()
    typed = {"amount": amount, "reason": "Kind"}
    shown = office.post(action_url(reservation, "adjust"), typed)
    sums = dict(
        re.findall(
            r'name="(expected_old_total|expected_amount)" value="([^"]+)"', shown.content.decode()
        )
    )
    assert sums["expected_old_total"] == "75.00"

    first, second = (confirm(office, reservation, "adjust", **typed, **sums) for _ in range(2))

    assert messages_of(first)[0][0] == "success"
    level, text = messages_of(second)[-1]
    assert level == "error"
    assert "The price has changed" in text
    assert "Nothing was done" in text
    assert PriceAdjustment.objects.count() == 1
    reservation.refresh_from_db()
    assert reservation.total_cost == max(75 + int(amount), 0)


@pytest.mark.parametrize("name", ["expected_old_total", "expected_amount"])
@pytest.mark.parametrize("text", ["", "x", "NaN", "sNaN", "-Infinity", "1e999"])
def test_adjust_price_invalid_expected_amount_is_refused(office, name, text):
    reservation = make_draft()

    done = confirm(office, reservation, "adjust", amount="-5", reason="Kind", **{name: text})

    assert "The price has changed" in messages_of(done)[0][1]
    assert not PriceAdjustment.objects.exists()


def test_adjust_price_of_free_reservation_is_refused(office):
    reservation = make_draft()
    confirm(office, reservation, "adjust", amount="-1000", reason="Kind")

    shown = office.post(action_url(reservation, "adjust"), {"amount": "-50", "reason": "Kind"})
    forced = confirm(office, reservation, "adjust", amount="-50", reason="Kind")

    assert "nothing left to take off" in words(shown)
    assert 'name="confirmed"' not in shown.content.decode()
    assert messages_of(forced)[-1][0] == "error"
    assert PriceAdjustment.objects.get().amount == -75


@pytest.mark.parametrize(
    ("amount", "message"),
    [
        ("0", "must not be 0"),
        ("100001", "less than or equal to 100000"),
        ("-100001", "greater than or equal to -100000"),
        ("1.001", "no more than 2 decimal places"),
        ("lots", "Enter a number"),
    ],
)
def test_adjust_price_invalid_amount_shows_error(office, amount, message):
    response = confirm(office, make_draft(), "adjust", amount=amount, reason="x")

    assert message in words(response)
    assert not PriceAdjustment.objects.exists()


def test_extend_hold_sets_new_end(office):
    reservation = make_draft()
    typed = {"until_0": "2027-03-01", "until_1": "12:00"}

    shown = words(office.post(action_url(reservation, "hold"), typed))
    confirm(office, reservation, "hold", **typed)

    assert "Then held until Mon 2027-03-01 12:00" in shown
    reservation.refresh_from_db()
    assert reservation.hold_until == NOW + 3 * HOUR


def test_extend_hold_beyond_limit_is_refused(office):
    reservation = make_draft()
    typed = {"until_0": "2027-03-03", "until_1": "08:00"}

    assert "at most 24 hours" in words(office.post(action_url(reservation, "hold"), typed))
    assert messages_of(confirm(office, reservation, "hold", **typed))[0][0] == "error"


def test_extend_hold_proposes_latest_time_possible(office, clock):
    clock.move_to(NOW + dt.timedelta(seconds=40))
    long_away, soon = make_draft(), make_draft(start=NOW + 4 * HOUR)

    def proposed(reservation):
        page = office.get(action_url(reservation, "hold"))
        return page.context["form"].initial["until"].isoformat()

    assert proposed(long_away) == "2027-03-02T09:00:00"
    assert proposed(soon) == "2027-03-01T13:00:00"


def test_extend_hold_is_not_offered_when_held_until_the_start(office):
    reservation = make_draft(start=NOW + 4 * HOUR)
    assert "hold" in offered(office, reservation)

    confirm(office, reservation, "hold", until_0="2027-03-01", until_1="13:00")

    reservation.refresh_from_db()
    assert reservation.hold_until == reservation.start
    assert "hold" not in offered(office, reservation)


def test_extend_hold_is_not_offered_when_held_as_long_as_possible(office, staff):
    reservation = make_draft(created_by=staff("Desk"))
    assert reservation.hold_until == NOW + 24 * HOUR
    assert "hold" not in offered(office, reservation)
    assert messages_of(confirm(office, reservation, "hold"))[0][0] == "error"


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
    assert OutboxMessage.objects.about(emails.get_subject_key(reservation)).count() == 2
    assert history.get_changes(reservation)[0].changes == {"mail": [None, "confirmed, sent again"]}


@pytest.mark.parametrize("sum_", ["", "x", "NaN", "sNaN", "Infinity", "1e999999"])
def test_cancel_invalid_expected_amount_is_refused(office, sum_):
    reservation = make_booking()
    confirm(office, reservation, "cancel", expected_amount=sum_)
    assert get_current_status(reservation) == Status.CONFIRMED


# --- Who ----------------------------------------------------------------------------------------


def test_viewer_has_no_actions(client, staff):
    reservation = make_pending_booking()
    client.force_login(staff("Viewer", reservation.room.center))

    page = client.get(reservation_url(reservation))

    assert page.context["actions"] == []
    assert reservation.user.email not in words(page)
    assert "Visa" not in words(page)
    for name in ACTIONS:
        assert client.get(action_url(reservation, name)).status_code == 403
        assert confirm(client, reservation, name).status_code == 403
    assert get_current_status(reservation) == Status.PENDING


def test_desk_cannot_adjust_prices(client, staff):
    reservation = make_pending_booking()
    client.force_login(staff("Desk", reservation.room.center))

    assert "adjust" not in offered(client, reservation)
    confirm(client, reservation, "approve")

    assert get_current_status(reservation) == Status.CONFIRMED
    assert confirm(client, reservation, "adjust", amount="-5", reason="x").status_code == 403


def test_reservation_of_other_center_is_not_found(client, staff):
    reservation, mine = make_pending_booking(), make_room()
    client.force_login(staff("Manager", mine.center))

    assert client.get(reservation_url(reservation)).status_code == 302
    assert client.get(action_url(reservation, "approve")).status_code == 404
    ticked = {"action": "approve", "_selected_action": [reservation.pk], "confirmed": "yes"}
    client.post(LIST, ticked)
    assert get_current_status(reservation) == Status.PENDING


def test_reschedule_to_unpermitted_center_is_refused(client, staff):
    reservation, theirs = make_booking(), make_room()
    client.force_login(staff("Manager", reservation.room.center))

    page = confirm(client, reservation, "move", **to(theirs))

    assert "You may not book rooms at that center." in words(page)
    reservation.refresh_from_db()
    assert reservation.room != theirs
