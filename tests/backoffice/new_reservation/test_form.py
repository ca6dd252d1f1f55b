"""A new reservation by staff: its form and its preview (docs/back-office.md)."""

import pytest
from django.urls import reverse

from reservations.models import Reservation
from tests.admin_forms import form_of
from tests.backoffice.new_reservation.helpers import ADD, PREVIEW, typed
from tests.backoffice.reading import words
from tests.factories_centers import MeetingRoomFactory, ServiceFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    AllowanceFactory,
    ReservationFactory,
    make_room,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]


def test_new_reservation_creates_held_draft_in_local_time(office, room, user):
    answer = office.post(ADD, typed(room, user), follow=True)
    made = Reservation.objects.get()
    assert (made.user, made.room, made.start, made.end) == (user, room, START, START + 3 * HOUR)
    assert made.created_by.is_superuser
    page = reverse("admin:reservations_reservation_change", args=[made.pk])
    assert answer.redirect_chain == [(page, 302)]
    assert f"{made} is held until Tue 2027-03-02 09:00 MST." in words(answer)


def test_new_reservation_saves_services_and_guests(office, room, user):
    coffee = ServiceFactory(center=room.center, name="Coffee", needs_quantity=True)
    beamer = ServiceFactory(center=room.center, name="Beamer", needs_duration=True)
    ServiceFactory(center=room.center, name="Flip chart")
    fields = {
        f"service-{coffee.pk}_chosen": "on",
        f"service-{coffee.pk}_quantity": "4",
        f"service-{beamer.pk}_chosen": "on",
        f"service-{beamer.pk}_duration_hours": "1.5",
        "number_of_attendees": "6",
        "attendees": "Grace Hopper <grace@example.com>\n\nLi Wu, li@example.com\nMr. X",
    }
    office.post(ADD, typed(room, user, **fields))
    made = Reservation.objects.get()
    chosen = made.chosen_services.order_by("service__name")
    assert [(str(each), each.duration_hours, each.quantity) for each in chosen] == [
        ("Beamer", 1.5, None),
        ("Coffee", None, 4),
    ]
    assert made.number_of_attendees == 6
    guests = made.attendees.filter(is_creator=False).values_list("name", "email_address")
    expected = [("Grace Hopper", "grace@example.com"), ("Li Wu", "li@example.com"), ("Mr. X", "")]
    assert list(guests) == expected


def test_new_reservation_query_prefills_form_and_is_ignored_if_invalid(office, room, user):
    query = {"user": user.pk, "room": room.pk, "start": "2027-03-03T09:00"}
    fields = form_of(office.get(ADD, query))
    names = ("user", "room", "start_0", "start_1", "end_1")
    expected = [user.email, str(room.pk), "2027-03-03", "09:00", "10:00"]
    assert [fields[name] for name in names] == expected
    for query in (
        *({"user": "abc", "room": "1"}, {"user": "9" * 5000}, {"room": "²"}, {"start": "zzz"}),
        *({"end": "2027-03-03T09:00:00Z"}, {"number_of_attendees": "many"}),
    ):
        assert office.get(ADD, {"center": room.center_id, **query}).status_code == 200, query


def test_new_reservation_invalid_data_is_refused(office, room, user):
    for changed in (
        *(
            {"user": "abc"},
            {"room": "²"},
            {"room": ""},
            {"end_0": "9999-12-31"},
            {"end_1": "25:00"},
        ),
        *({"start_0": "0001-01-01"}, {"number_of_attendees": "9" * 30}, {"attendees": "a@b"}),
        {"attendees": "4242 4242 4242 4242"},
    ):
        # The answer to the form has the preview, too.
        answer = office.post(ADD, typed(room, user, **changed))
        assert answer.status_code == 200, changed
        assert answer.context["form"].errors, changed
    for changed, message in (
        ({"room": make_room().pk}, "This center has no such room."),
        ({"start_0": "15/3/2027"}, "Enter a valid date."),
        ({"start_0": "2027-03-14", "start_1": "02:30"}, "The clock skips this time at the center."),
    ):
        assert message in words(office.post(ADD, typed(room, user, **changed))), changed
    assert not Reservation.objects.exists()


def test_new_reservation_at_other_center_is_not_found(client, staff, room, user):
    other = make_room()
    client.force_login(staff("Desk", other.center))
    for address in (ADD, PREVIEW):
        assert client.post(address, typed(room, user)).status_code == 404
        assert client.post(address, typed(room, user, center="")).status_code == 404
    assert client.get(ADD, {"center": room.center_id}).status_code == 404
    assert client.get(ADD, {"room": room.pk}).status_code == 404
    # A room of another center is refused, too.
    answer = client.post(ADD, typed(room, user, center=other.center_id, email=user.email))
    assert answer.status_code == 200
    assert not Reservation.objects.exists()


EVENING = {"start": "2027-03-03 19:00", "end": "2027-03-03 21:00"}


def test_hours_override_by_manager_is_previewed_and_kept(client, staff, room, user):
    client.force_login(staff("Manager", room.center))
    fields = typed(room, **EVENING, email=user.email)
    preview = words(client.post(PREVIEW, fields))
    assert "✕ Not available" in preview
    assert "You may book it outside opening hours" in preview
    fields["hours_override_reason"] = "The mayor comes"
    assert "✓ Available, outside opening hours" in words(client.post(PREVIEW, fields))
    assert "The mayor comes" in client.post(ADD, fields, follow=True).text


def test_hours_override_by_desk_is_ignored(client, staff, room, user):
    client.force_login(staff("Desk", room.center))
    assert "hours_override_reason" not in client.get(ADD).text
    fields = typed(room, **EVENING, email=user.email, hours_override_reason="Please")
    assert "The center is closed at that time." in words(client.post(ADD, fields))
    assert not Reservation.objects.exists()


def test_new_reservation_proposes_next_free_hour(office, room):
    """The clock stands at 9:00, and the center is open until 18:00."""
    ReservationFactory(room=room, start=NOW, end=NOW + 2 * HOUR)
    MeetingRoomFactory(center=room.center, rate=room.rate, capacity=2)
    for query, expected in (
        ({}, "2027-03-01T09:15"),
        ({"room": room.pk}, "2027-03-01T11:00"),
        ({"number_of_attendees": 6}, "2027-03-01T11:00"),
    ):
        form = office.get(ADD, {"center": room.center_id, **query}).context["form"]
        assert form["start"].value().isoformat(timespec="minutes") == expected, query
        assert form["end"].value() - form["start"].value() == HOUR, query


COFFEE_CHOSEN = {"service-chosen": "on"}


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({}, ("✓ Available", "Boardroom, 3 hours", "Total $75.00")),
        ({**COFFEE_CHOSEN, "service-quantity": "2"}, ("✓ Available", "Coffee", "Total $105.00")),
        ({"room": ""}, ("Choose a room and its times.",)),
        ({"number_of_attendees": "9"}, ("✕ Not possible", "The room holds 8 people.")),
        (COFFEE_CHOSEN, ("✕ Not possible", "Coffee: This service needs a quantity of 1 or more.")),
        (
            {"service-quantity": "some", "number_of_attendees": "many"},
            ("Number of attendees: Enter a whole number.", "Coffee: Enter a whole number."),
        ),
    ],
)
def test_preview_shows_availability_price_and_what_is_missing(office, room, changed, shown):
    coffee = ServiceFactory(center=room.center, name="Coffee", needs_quantity=True)
    fields = {
        name.replace("service-", f"service-{coffee.pk}_"): value for name, value in changed.items()
    }

    # The button does without a script what the script does.
    for page in (PREVIEW, ADD):
        text = words(office.post(page, typed(room, **fields, check="1")))
        assert [each for each in shown if each not in text] == [], page
        assert ("✓ Available" in text) is ("✓ Available" in shown)
    assert not Reservation.objects.exists()


def test_preview_with_customer_subtracts_included_hours(office, room, user):
    AllowanceFactory(user=user, hours=2)
    text = words(office.post(PREVIEW, typed(room, user)))
    assert "Price for Ada Lovelace" in text
    assert "Total $25.00" in text
    office.post(ADD, typed(room, user))
    assert Reservation.objects.get().total_cost == 25


def test_preview_of_room_without_rate_says_so_and_needs_post(office, room):
    type(room).objects.filter(pk=room.pk).update(rate=None)
    assert "no price yet" in words(office.post(PREVIEW, typed(room)))
    assert office.get(PREVIEW, typed(room)).status_code == 404
