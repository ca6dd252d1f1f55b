"""Closures show the reservations that they affect before they are saved."""

import datetime as dt
import re

import pytest
from django.urls import reverse

from centers.models import Center, Closure
from tests.admin_forms import errors_of, form_of
from tests.backoffice.reading import words
from tests.factories_centers import MeetingRoomFactory
from tests.factories_reservations import HOUR, NOW, START, make_booking, make_draft

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

ADD = reverse("admin:centers_closure_add")
HOLIDAYS = reverse("admin:centers_closure_holidays")
RESOLVE = reverse("admin:reservations_in_closures")


def link_to(reservation):
    page = reverse("admin:reservations_reservation_change", args=[reservation.pk])
    return (
        f'<a class="underline" href="{page}">Reservation {reservation.pk}</a>'
        " (Boardroom, Wed 2027-03-03 09:00 - 12:00, Ada Lovelace, $75.00)"
    )


def closure_of(center, room=None, day="2027-03-03"):
    return {
        "center": center.pk,
        "room": room.pk if room else "",
        "starts_at_0": day,
        "starts_at_1": "08:00",
        "ends_at_0": day,
        "ends_at_1": "10:00",
        "reason": "Repairs",
    }


def test_closure_over_reservations_is_saved_after_all_were_displayed(office):
    reservation = make_booking()
    typed = closure_of(reservation.room.center)

    page = office.post(ADD, typed)

    assert link_to(reservation) in page.text
    assert "Nothing is saved yet: save again to close." in words(page)
    assert not Closure.objects.exists()
    # It is displayed again with those that were booked since.
    other = make_booking(room=MeetingRoomFactory(center=reservation.room.center, name="Aspen"))
    page = office.post(ADD, form_of(page))
    assert f"Reservation {other.pk}</a> (Aspen" in page.text
    assert not Closure.objects.exists()
    saved = office.post(ADD, form_of(page))
    assert saved.status_code == 302
    assert Closure.objects.get().reason == "Repairs"
    assert saved.url == f"{RESOLVE}?center={typed['center']}"


def test_closure_of_other_time_or_room_is_saved_at_once(office, clock):
    draft, booking = make_draft(), make_booking(start=START + dt.timedelta(days=1))
    center = booking.room.center
    other_room = MeetingRoomFactory(center=center, name="Aspen")
    clock.move_to(NOW + HOUR)  # the hold of the draft has expired

    for typed in (
        closure_of(draft.room.center),
        closure_of(center, other_room, day="2027-03-04"),
        closure_of(center, day="2027-03-05"),
    ):
        assert errors_of(office.post(ADD, typed)) == {}
    assert Closure.objects.count() == 3


def test_closure_change_of_the_reason_is_saved_at_once(office):
    reservation = make_booking()
    closure = Closure.objects.create(
        center=reservation.room.center, starts_at=START, ends_at=START + HOUR, reason="Paint"
    )
    address = reverse("admin:centers_closure_change", args=[closure.pk])
    typed = form_of(office.get(address))

    office.post(address, {**typed, "reason": "Repairs"})
    page = office.post(address, {**typed, "ends_at_1": "11:30"})

    assert link_to(reservation) in page.text
    closure.refresh_from_db()
    assert (closure.reason, closure.ends_at) == ("Repairs", START + HOUR)


def test_closure_on_the_center_page_is_saved_after_it_was_displayed(office):
    reservation = make_booking()
    address = (
        reverse("admin:centers_center_change", args=[reservation.room.center_id]) + "?tab=closure"
    )
    new = closure_of(reservation.room.center)
    typed = {
        **form_of(office.get(address)),
        "closures-TOTAL_FORMS": "1",
        **{f"closures-0-{name}": value for name, value in new.items() if name != "center"},
    }

    page = office.post(address, typed)

    assert link_to(reservation) in page.text
    assert not Closure.objects.exists()
    office.post(address, form_of(page))
    assert Closure.objects.get().center == Center.objects.get(pk=reservation.room.center_id)


def test_holidays_preview_lists_reservations(office):
    reservation = make_booking()
    typed = {"centers": [reservation.room.center_id], "year": "2027"}

    page = office.post(HOLIDAYS, {**typed, "lines": "2027-03-03 Founders Day", "do": "preview"})
    other = office.post(HOLIDAYS, {**typed, "lines": "2027-03-05 Founders Day", "do": "preview"})

    assert link_to(reservation) in page.text
    assert "These reservations hold a room" not in words(other)
    assert not Closure.objects.exists()


def test_new_opening_hours_are_saved_after_the_reservations_outside_were_displayed(office):
    reservation = make_booking()  # Wednesday from 9 to 12
    center = reservation.room.center
    make_booking(room=reservation.room, start=START + dt.timedelta(days=1))
    address = reverse("admin:centers_center_change", args=[center.pk]) + "?tab=openinghours"
    typed = form_of(office.get(address))
    wednesday = next(
        name.removesuffix("weekday")
        for name, value in typed.items()
        if re.fullmatch(r"opening_hours-\d+-weekday", name) and str(value) == "2"
    )

    page = office.post(address, {**typed, f"{wednesday}opens": "10:00"})

    assert link_to(reservation) in page.text
    assert page.text.count("Ada Lovelace, $75.00)") == 1
    assert "Nothing is saved yet: save again to change them." in words(page)
    assert not center.opening_hours.filter(opens=dt.time(10)).exists()
    office.post(address, form_of(page))
    assert center.opening_hours.get(opens=dt.time(10)).weekday == 2
    # What was outside before is not named again.
    typed = form_of(office.get(address))
    assert office.post(address, {**typed, f"{wednesday}opens": "10:30"}).status_code == 302
