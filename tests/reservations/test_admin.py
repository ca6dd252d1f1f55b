"""The back office's pages of reservations, by the browser's own road."""

import datetime as dt
from decimal import Decimal
from html import unescape

import pytest
import time_machine
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.urls import reverse

from centers.models import Closure
from reservations import adjusting, approval
from reservations.forms import HIGHEST_ADJUSTMENT
from reservations.models import PriceAdjustment, Reservation
from reservations.status import Status
from roombook.errors import InvalidRequest, PromoCodeInvalid, RateNotConfigured, ReservationNotOpen
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    ReservationFactory,
    a_room,
    booked,
    draft,
    requested,
)

pytestmark = pytest.mark.django_db

LIST = reverse("admin:reservations_reservation_changelist")
ADD = reverse("admin:reservations_reservation_add")
DAY = dt.timedelta(days=1)


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


@pytest.fixture
def office(client):
    client.force_login(AdministratorFactory())
    return client


def page_of(reservation):
    return reverse("admin:reservations_reservation_change", args=[reservation.pk])


def messages_of(response):
    return [(each.level_tag, str(each)) for each in response.context["messages"]]


def act(office, name, *reservations, **more):
    data = {"action": name, "_selected_action": [row.pk for row in reservations], **more}
    return office.post(LIST, data, follow=True)


def adjust(office, reservation, amount, reason="Projector broke"):
    data = {
        f"{prefix}-{name}": 0
        for prefix in (
            *("line_items", "price_adjustments", "chosen_services", "attendees"),
            *("allowance_uses", "promo_redemptions"),
        )
        for name in ("TOTAL_FORMS", "INITIAL_FORMS")
    }
    data |= {
        "price_adjustments-TOTAL_FORMS": 1,
        "price_adjustments-0-amount": amount,
        "price_adjustments-0-reason": reason,
        "_continue": "Save",
    }
    return office.post(page_of(reservation), data, follow=True)


def new_draft(user, room, /, start="2027-03-03 09:00", end="2027-03-03 12:00", **changed):
    (start_day, start_time), (end_day, end_time) = start.split(), end.split()
    return {
        "user": user.pk,
        "room": room.pk,
        "number_of_attendees": "",
        "start_0": start_day,
        "start_1": start_time,
        "end_0": end_day,
        "end_1": end_time,
        "extras-TOTAL_FORMS": 0,
        "extras-INITIAL_FORMS": 0,
        **changed,
    }


# --- A change of price --------------------------------------------------------------------------


def test_staff_change_the_price_of_a_draft(office):
    reservation = draft()

    adjust(office, reservation, "-5.00")

    reservation.refresh_from_db()
    assert reservation.price_adjustments.get().amount == Decimal("-5.00")
    assert reservation.total_cost == Decimal("70.00")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RateNotConfigured(), RateNotConfigured.default_message),
        (PromoCodeInvalid(), PromoCodeInvalid.default_message),
        (ReservationNotOpen(), ReservationNotOpen.default_message),
        (InvalidRequest({"amount": "Too much."}), "Too much."),
    ],
)
def test_a_refused_change_of_price_is_told_and_changes_nothing(office, monkeypatch, error, told):
    reservation = draft()

    def refuse(*_, **__):
        PriceAdjustment.objects.create(
            reservation=reservation, amount=1, reason="x", by=reservation.user, at=NOW
        )
        raise error

    monkeypatch.setattr(adjusting, "adjust_price", refuse)

    response = adjust(office, reservation, "-5.00")

    assert messages_of(response) == [("error", told)]
    assert not PriceAdjustment.objects.exists()
    assert not LogEntry.objects.exists()


def test_saving_the_page_writes_nothing_of_the_row_itself(office, monkeypatch):
    reservation = draft()
    monkeypatch.setattr(
        "django.contrib.admin.ModelAdmin.save_model",
        lambda *_: pytest.fail("The row was written."),
    )

    assert messages_of(adjust(office, reservation, "-5.00"))[0][0] == "success"


@pytest.mark.parametrize(
    ("amount", "told"),
    [
        ("0", "The amount is what is added or taken off: not 0."),
        (str(HIGHEST_ADJUSTMENT + 1), "less than or equal to 100000"),
        (str(-HIGHEST_ADJUSTMENT - 1), "greater than or equal to -100000"),
        ("1.001", "no more than 2 decimal places"),
    ],
)
def test_a_senseless_change_of_price_is_refused_in_words(office, amount, told):
    response = adjust(office, draft(), amount)

    assert told in unescape(response.content.decode())
    assert not PriceAdjustment.objects.exists()


# --- Addresses and forms with nonsense in them --------------------------------------------------


@pytest.mark.parametrize("pk", ["²", "abc", "9" * 30, "0"])
def test_an_address_of_no_reservation_leads_home(office, pk):
    response = office.get(f"/admin/reservations/reservation/{pk}/change/")

    assert response.status_code == 302


@pytest.mark.parametrize(
    "query",
    [
        *({"user": "abc", "room": "1"}, {"user": "9" * 5000}, {"room": "²"}, {"start": "zzz"}),
        *({"start": "2027-13-01 09:00"}, {"end": "2027-03-03T09:00:00Z"}),
        {"number_of_attendees": "many"},
    ],
)
def test_what_an_address_cannot_fill_in_is_left_out(office, query):
    assert office.get(ADD, query).status_code == 200


def test_an_address_can_fill_a_draft_in(office):
    user, room = UserFactory(), a_room()

    page = office.get(ADD, {"user": user.pk, "room": room.pk, "start": "2027-03-03T09:00"})

    html = page.content.decode()
    assert user.email in html
    assert 'value="2027-03-03"' in html
    assert 'value="09:00:00"' in html


@pytest.mark.parametrize(
    "changed",
    [
        *({"user": "abc"}, {"room": "²"}, {"user": "9" * 30}),
        *({"end_0": "9999-12-31"}, {"start_0": "0001-01-01"}, {"start_0": "x"}),
        {"extras-TOTAL_FORMS": 1, "extras-0-service": "abc"},
    ],
)
def test_a_draft_of_nonsense_is_refused_on_its_page(office, changed):
    response = office.post(ADD, new_draft(UserFactory(), a_room(), **changed))

    assert response.status_code == 200
    assert not Reservation.objects.exists()


@pytest.mark.parametrize(
    ("page", "name"),
    [
        *(("centers_closure", "center"), ("centers_rate", "center")),
        *(("reservations_allowance", "user"), ("reservations_promocode", "centers")),
    ],
)
def test_a_box_that_finds_by_typing_takes_no_words_for_an_id(office, page, name):
    address = reverse(f"admin:{page}_add")

    assert office.get(address, {name: "abc"}).status_code == 200
    assert office.post(address, {name: "abc"}).status_code == 200


def test_a_draft_is_on_the_centers_clock(office):
    office.post(ADD, new_draft(UserFactory(), a_room()))

    assert Reservation.objects.get().start == START


def test_why_a_draft_is_refused_is_told_once(office):
    response = office.post(ADD, new_draft(UserFactory(), a_room(), end="2027-03-03 09:15"))

    sentence = "The shortest booking of this room is 30 minutes."
    assert response.content.decode().count(sentence) == 1


# --- Actions ------------------------------------------------------------------------------------


def test_cancelling_again_is_told_as_what_it_is_and_leaves_no_history(office):
    cancelled, other = booked(), booked()
    act(office, "cancel", cancelled, confirmed="yes")
    LogEntry.objects.all().delete()

    response = act(office, "cancel", cancelled, other, confirmed="yes")

    again, anew = messages_of(response)
    assert again == ("info", f"{cancelled} is cancelled already: nothing was done.")
    assert anew[0] == "success"
    assert [entry.object_id for entry in LogEntry.objects.all()] == [str(other.pk)]


def names_of(buttons):
    return [name for name, _ in buttons]


def test_a_page_offers_what_can_be_done_and_no_more(office, clock):
    assert names_of(office.get(page_of(draft())).context["buttons"]) == ["cancel"]
    assert names_of(office.get(page_of(requested())).context["buttons"]) == [
        *("approve", "decline", "cancel")
    ]
    confirmed = booked()
    assert names_of(office.get(page_of(confirmed)).context["buttons"]) == ["cancel"]
    for status in (Status.DECLINED, Status.CANCELLED, Status.EXPIRED, Status.PROCESSING):
        row = ReservationFactory(status=status)
        assert names_of(office.get(page_of(row)).context["buttons"]) == []
    clock.move_to(START + HOUR)
    office.force_login(AdministratorFactory())  # a session ends with the working day
    assert names_of(office.get(page_of(confirmed)).context["buttons"]) == ["mark_no_show"]


def test_a_button_acts_on_its_row_and_comes_back_to_it(office):
    reservation = requested()

    response = act(office, "approve", reservation, from_its_page="yes")

    reservation.refresh_from_db()
    assert reservation.status == Status.CONFIRMED
    assert response.redirect_chain == [(page_of(reservation), 302)]


def test_the_cancel_button_shows_the_refund_first(office):
    reservation = booked()

    preview = act(office, "cancel", reservation, from_its_page="yes")

    assert "$75.00 is refunded" in preview.content.decode()
    assert preview.context["back"] == page_of(reservation)
    assert 'name="from_its_page"' in preview.content.decode()
    reservation.refresh_from_db()
    assert reservation.status == Status.CONFIRMED


def test_an_action_of_the_list_comes_back_to_the_list(office):
    assert act(office, "decline", requested()).redirect_chain == [(LIST, 302)]


def test_only_who_may_change_reservations_sees_the_buttons(client):
    clerk = UserFactory(is_staff=True)
    clerk.user_permissions.add(Permission.objects.get(codename="view_reservation"))
    client.force_login(clerk)

    assert client.get(page_of(requested())).context["buttons"] == []


def test_nothing_is_saved_where_nothing_can_be_typed(office):
    assert 'name="_save"' in office.get(page_of(draft())).content.decode()
    assert 'name="_save"' not in office.get(page_of(booked())).content.decode()


# --- The list -----------------------------------------------------------------------------------


def test_the_list_can_be_cut_to_days(office):
    midnight = NOW.replace(hour=0)
    rows = {
        name: ReservationFactory(start=midnight + offset).pk
        for name, offset in (
            *(("yesterday", -HOUR), ("today", 0 * HOUR), ("tomorrow", DAY)),
            *(("in a week", 7 * DAY - HOUR), ("later", 7 * DAY)),
        )
    }

    def listed(when):
        found = office.get(LIST, {"when": when}).context["cl"].queryset
        return [name for name, pk in rows.items() if found.filter(pk=pk).exists()]

    assert listed("today") == ["today"]
    assert listed("tomorrow") == ["tomorrow"]
    assert listed("week") == ["today", "tomorrow", "in a week"]
    assert listed("past") == ["yesterday"]
    assert len(office.get(LIST).context["cl"].queryset) == 5


# --- Clocks -------------------------------------------------------------------------------------


def test_no_page_on_a_centers_clock_has_shortcuts_of_another_clock(office):
    room = a_room()
    closure = Closure.objects.create(center=room.center, starts_at=START, ends_at=START + HOUR)
    pages = (
        ADD,
        reverse("admin:centers_center_change", args=[room.center_id]),
        reverse("admin:centers_closure_change", args=[closure.pk]),
        reverse("admin:centers_openinghours_add"),
    )
    for page in pages:
        html = office.get(page).content.decode()
        assert "vTimeField" not in html
        assert "vDateField" not in html
        assert "DateTimeShortcuts" not in html


# --- Closures -----------------------------------------------------------------------------------


def close(office, center, room=None, reason="Leak", **times):
    day = {"starts_at_0": "2027-03-03", "ends_at_0": "2027-03-03"}
    hours = {"starts_at_1": "08:00", "ends_at_1": "18:00"}
    data = {"center": center.pk, "room": room.pk if room else "", "reason": reason}
    address = reverse("admin:centers_closure_add")
    return office.post(address, {**data, **day, **hours, **times}, follow=True)


def test_a_closure_over_bookings_is_saved_and_staff_are_told_of_them(office):
    room = a_room()
    mine = booked(room=room)
    approval.decline(requested(room=a_room(is_live_inventory=False)).pk, now=NOW)
    ReservationFactory(room=room, status=Status.CANCELLED)
    ReservationFactory(room=room, start=START + DAY)

    warning, saved = messages_of(close(office, room.center))

    assert Closure.objects.get().reason == "Leak"
    assert saved[0] == "success"
    assert warning[0] == "warning"
    assert f'<a href="{page_of(mine)}">{mine}</a>' in warning[1]
    assert "2027-03-03 09:00" in warning[1]
    assert warning[1].count("<a ") == 1


def test_a_closure_of_another_room_touches_nobody(office):
    room = a_room()
    booked(room=room)
    other = a_room()

    assert [level for level, _ in messages_of(close(office, other.center, other))] == ["success"]


def test_of_many_bookings_in_a_closure_the_first_are_told(office):
    room = a_room()
    for number in range(22):
        ReservationFactory(
            room=room, start=START + number * HOUR / 4, end=START + (number + 1) * HOUR / 4
        )

    warning = messages_of(close(office, room.center))[0][1]

    assert warning.count("<a ") == 20
    assert warning.endswith("; and 2 more.")
