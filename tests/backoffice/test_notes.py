"""Notes of staff about reservations and customers: who sees, adds and deletes them (B18.2)."""

import datetime as dt
import json

import pytest
from django.urls import reverse

from accounts import account_export
from accounts.models import User
from reservations.booking import account_erasure, notes
from reservations.models import Note
from roombook.backoffice.models import AuditEntry
from roombook.errors import InvalidRequest
from tests.backoffice.many import many
from tests.backoffice.reading import messages_of
from tests.backoffice.reservation_pages import reservation_url
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import HOUR, NOW, make_booking, make_room

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]


@pytest.fixture
def booking():
    return make_booking()


@pytest.fixture
def desk(client, staff, booking):
    client.force_login(staff("Desk", booking.room.center))
    return client


def customer_url(user):
    return reverse("admin:accounts_user_change", args=[user.pk])


def post_note(client, subject, **fields):
    url = customer_url(subject) if isinstance(subject, User) else reservation_url(subject)
    return client.post(url, {f"note-{name}": value for name, value in fields.items()})


def make_note(subject, text, *, by=None, now=NOW):
    return notes.add_note(subject, text, by=by or AdministratorFactory(), now=now)


def listed(client, url):
    page = client.get(url)
    found = page.context["notes"]
    return None if found is None else [note.text for note, _ in found["entries"]]


def test_notes_about_a_reservation_and_its_customer_are_shown_on_both_pages(desk, booking):
    response = post_note(desk, booking, text="  Window seat\r\n<b>agreed</b> ")

    assert response.url == f"{reservation_url(booking)}#notes"
    note = Note.objects.get()
    assert (note.text, note.created_at) == ("Window seat\r\n<b>agreed</b>", NOW)
    assert post_note(desk, booking.user, text="Still water").url.endswith("#notes")
    for url in (reservation_url(booking), customer_url(booking.user)):
        assert "Window seat<br>&lt;b&gt;agreed&lt;/b&gt;" in desk.get(url).text
        assert "Still water" in listed(desk, url)


def test_invalid_note_is_refused_with_a_reason_and_keeps_its_text(desk, booking):
    for subject, text, error in (
        (booking, " ", "Enter a text."),
        (booking, "x" * 2001, "Ensure this value has at most 2000 characters"),
        (booking.user, "Card 4242 4242 4242 4242", "This must not contain a card number."),
    ):
        response = post_note(desk, subject, text=text)

        [(level, message)] = messages_of(response)
        assert level == "error"
        assert error in message
        assert "4242" not in message
        assert response.context["notes"]["form"]["text"].value() == text
    assert not Note.objects.exists()


def test_same_text_twice_at_once_is_one_note(booking, clock):
    clerk = AdministratorFactory()
    first = make_note(booking, "Called", by=clerk)

    assert make_note(booking, "Called", by=clerk) == first
    assert make_note(booking, "Called") != first
    assert make_note(booking.user, "Called", by=clerk) != first
    assert make_note(booking, "Called", by=clerk, now=NOW + HOUR) != first


def test_author_deletes_own_note_for_a_day_and_manager_always(client, staff, booking, clock):
    desk, other = (staff("Desk", booking.room.center) for _ in range(2))
    manager = staff("Manager", booking.room.center)
    first, second = make_note(booking, "One", by=desk), make_note(booking, "Two", by=desk)
    theirs = make_note(booking, "Theirs", by=other)

    def delete(user, note):
        client.force_login(user)
        return post_note(client, booking, delete=note.pk)

    assert delete(other, first).status_code == delete(desk, theirs).status_code == 403
    assert delete(desk, first).status_code == 302
    assert "does not exist any more" in messages_of(delete(desk, first))[-1][1]
    clock.move_to(NOW + dt.timedelta(hours=25))
    assert delete(desk, second).status_code == 403
    assert delete(manager, second).status_code == delete(manager, theirs).status_code == 302
    assert not Note.objects.exists()
    about_customer = make_note(booking.user, "Three")
    client.force_login(manager)
    # The customer belongs to no center: it needs the permission at all of them.
    assert post_note(client, booking.user, delete=about_customer.pk).status_code == 403
    client.force_login(staff("Manager"))
    assert post_note(client, booking.user, delete=about_customer.pk).status_code == 302


def test_notes_follow_roles_at_their_center(client, staff, booking):
    make_note(booking, "Secret")
    theirs = make_booking(room=make_room())
    for role, sees, adds in (
        ("Viewer", False, False),
        ("Accountant", True, False),
        ("Desk", True, True),
        ("Manager", True, True),
    ):
        client.force_login(staff(role, booking.room.center))
        page = client.get(reservation_url(booking), {"note-text": "x"})
        assert (page.context["notes"] is not None) == ("Secret" in page.text) == sees, role
        assert post_note(client, booking, text=role).status_code == (302 if adds else 403), role
        assert post_note(client, theirs, text=role).url == reverse("admin:index"), role
        assert Note.objects.filter(text=role).count() == adds, role
    client.force_login(booking.user)
    assert post_note(client, booking, text="x").url.startswith("/admin/login/")
    # A request with GET has added nothing, either.
    assert not Note.objects.filter(text="x").exists()


def test_notes_of_other_centers_are_hidden_on_the_customers_page(desk, booking):
    elsewhere = make_booking(booking.user, make_room(), start=booking.end + HOUR)
    make_note(elsewhere, "Elsewhere")
    make_note(booking, "Here")

    assert listed(desk, customer_url(booking.user)) == ["Here"]
    stranger = Note.objects.get(text="Elsewhere")
    post_note(desk, booking.user, delete=stranger.pk)
    assert Note.objects.filter(pk=stranger.pk).exists()


def test_audit_log_records_note_without_its_text(desk, booking):
    post_note(desk, booking, text="Secret agreement")
    note = Note.objects.get()

    assert AuditEntry.objects.latest("pk").changes["text"] == [None, "(not kept)"]
    post_note(desk, booking, delete=note.pk)
    assert AuditEntry.objects.latest("pk").get_action_display() == "Deleted"
    assert not [each for each in AuditEntry.objects.all() if "Secret" in str(vars(each))]


def test_erasure_deletes_notes_and_refuses_new_ones():
    ada, clerk = UserFactory(), AdministratorFactory()
    (past,) = many(make_room(), ada, 1, start=NOW - HOUR)
    make_note(ada, "About her", by=clerk)
    make_note(past, "About it", by=clerk)
    kept = make_note(UserFactory(), "About another", by=clerk)

    account_erasure.erase_account(ada.pk, by=clerk, now=NOW)

    assert list(Note.objects.all()) == [kept]
    for subject in (ada, past):
        with pytest.raises(InvalidRequest):
            make_note(subject, "Later", by=clerk)


def test_notes_are_in_the_export_of_staff_and_not_in_that_of_the_customer(booking):
    make_note(booking, "Agreed")
    make_note(booking.user, "Polite")

    exported = account_export.build_export(booking.user, for_staff=True)

    assert exported["Notes"] == [
        {"ReservationId": booking.pk, "Text": "Agreed", "At": NOW.isoformat()},
        {"Text": "Polite", "At": NOW.isoformat()},
    ]
    assert "Agreed" not in json.dumps(account_export.build_export(booking.user))


def test_notes_stand_on_today_its_sheet_and_in_the_panel_for_those_who_may_see_them(
    client, staff, booking, clock
):
    make_note(booking, "Window seat")
    make_note(booking.user, "Vegetarian")
    make_note(make_booking(), "Elsewhere")
    clock.move_to(booking.start)
    panel = {"headers": {"X-Requested-With": "fetch"}}
    for role, is_shown in (("Desk", True), ("Viewer", False)):
        client.force_login(staff(role, booking.room.center))
        today = client.get(reverse("admin:reservations_today")).text
        assert "Elsewhere" not in today
        for page in (today, client.get(reservation_url(booking), **panel).text):
            for text in ("Window seat", "Vegetarian"):
                assert (text in page) == is_shown, (role, text)
