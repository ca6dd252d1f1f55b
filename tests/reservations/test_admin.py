"""The back office pages of reservations, through HTTP requests."""

import pytest
from django.urls import reverse

from accounts.act import Act
from centers.models import Closure
from reservations.booking import approval
from reservations.models.status import Status
from tests.factories_reservations import (
    DAY,
    HOUR,
    NOW,
    START,
    ReservationFactory,
    make_booking,
    make_pending_booking,
    make_room,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

ADD = reverse("admin:reservations_reservation_add")


def page_of(reservation):
    return reverse("admin:reservations_reservation_change", args=[reservation.pk])


# --- Invalid URLs and forms -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "name"),
    [
        *(("centers_closure", "center"), ("centers_rate", "center")),
        *(("reservations_allowance", "user"), ("reservations_promocode", "centers")),
    ],
)
def test_autocomplete_field_invalid_id_is_ignored(office, page, name):
    address = reverse(f"admin:{page}_add")

    assert office.get(address, {name: "abc"}).status_code == 200
    assert office.post(address, {name: "abc"}).status_code == 200


# --- Time zones -----------------------------------------------------------------------------------


def test_local_time_pages_have_no_browser_time_shortcuts(office):
    room = make_room()
    closure = Closure.objects.create(center=room.center, starts_at=START, ends_at=START + HOUR)
    pages = (
        ADD,
        reverse("admin:centers_center_change", args=[room.center_id]),
        reverse("admin:centers_closure_change", args=[closure.pk]),
    )
    for page in pages:
        html = office.get(page).content.decode()
        assert "vTimeField" not in html
        assert "vDateField" not in html
        assert "DateTimeShortcuts" not in html


# --- Closures -------------------------------------------------------------------------------------


def close(office, center, room=None, reason="Leak", **times):
    day = {"starts_at_0": "2027-03-03", "ends_at_0": "2027-03-03"}
    hours = {"starts_at_1": "08:00", "ends_at_1": "18:00"}
    data = {"center": center.pk, "room": room.pk if room else "", "reason": reason}
    address = reverse("admin:centers_closure_add")
    return office.post(address, {**data, **day, **hours, **times}, follow=True)


def list_reservations(response):
    """Return the reservations that the page lists before the closure is saved."""
    _, _, listed = response.text.partition("These reservations hold a room at that time: ")
    return listed.partition("Nothing is saved yet")[0]


def test_closure_preview_lists_only_reservations_that_hold_their_room(office):
    room = make_room()
    mine = make_booking(room=room)
    approval.decline(
        Act(None, NOW), make_pending_booking(room=make_room(is_live_inventory=False)).pk
    )
    ReservationFactory(room=room, status=Status.CANCELLED)
    ReservationFactory(room=room, start=START + DAY)

    listed = list_reservations(close(office, room.center))

    assert listed.startswith(f'<a class="underline" href="{page_of(mine)}">{mine}</a>')
    assert listed.count("<a ") == 1
    assert not Closure.objects.exists()


def test_closure_over_many_bookings_lists_the_first(office):
    room = make_room()
    for number in range(22):
        ReservationFactory(
            room=room, start=START + number * HOUR / 4, end=START + (number + 1) * HOUR / 4
        )

    listed = list_reservations(close(office, room.center))

    assert listed.count("<a ") == 20
    assert "; and 2 more." in listed
