"""The pages that import tables of rows: who may, and a file from its preview to its end."""

import datetime as dt

import pytest
from auditlog.models import LogEntry

from centers.models import MeetingRoom
from roombook.imports import files
from roombook.imports.models import Upload
from roombook.imports.sheet import ImportRights
from tests.factories_centers import CenterFactory, MeetingRoomFactory
from tests.factories_people import AdministratorFactory
from tests.imports import (
    LISTS,
    NOON,
    OMAHA,
    Browser,
    a_closure,
    a_room,
    check,
    csv_of,
    errors_of,
    told,
)

pytestmark = pytest.mark.django_db


# --- Roles --------------------------------------------------------------------------------------


def test_rows_of_other_centers_are_not_theirs_to_change():
    mine, other = MeetingRoomFactory(), MeetingRoomFactory()
    allowed = ImportRights(add={mine.center_id}, change={mine.center_id}, export=set())

    def wrong(row):
        return told(errors_of("rooms", csv_of(row), allowed))

    assert wrong({"id": mine.pk, "capacity": "9"}) == []
    assert wrong({"id": other.pk, "capacity": "9"}) == [(2, "id")]
    assert wrong(a_room(other.center)) == [(2, "center_id")]
    named = a_room(other.center) | {"center": other.center.name}
    del named["center_id"]
    assert wrong(named) == [(2, "center")]


def test_who_has_some_centers_cannot_add_one():
    mine, other = CenterFactory(), CenterFactory()
    allowed = ImportRights(add={mine.pk}, change={mine.pk}, export={mine.pk})

    assert told(errors_of("centers", csv_of(OMAHA), allowed)) == [(2, "")]
    row = {"id": other.pk, "rank": "1"}
    assert told(errors_of("centers", csv_of(row), allowed)) == [(2, "id")]
    named = {"name": other.name, "city": "Denver", "state": "CO", "rank": "1"}
    assert told(errors_of("centers", csv_of(named), allowed)) == [(2, "")]
    assert errors_of("centers", csv_of({"id": mine.pk, "rank": "1"}), allowed) == []


@pytest.mark.parametrize(("page", "is_of_centers"), LISTS.items())
def test_who_may_import(client, staff, page, is_of_centers):
    center = CenterFactory()
    address = f"/admin/{page}/import/"
    everywhere, there = staff("Manager"), staff("Manager", center)
    may = {everywhere: True, there: is_of_centers}
    for role in ("Viewer", "Desk", "Accountant"):
        may |= {staff(role): False, staff(role, center): False}

    for user, is_allowed in may.items():
        client.force_login(user)
        assert client.get(address).status_code == (200 if is_allowed else 403), user


# --- Pages --------------------------------------------------------------------------------------


@pytest.fixture
def rooms_page(client, staff):
    stored = MeetingRoomFactory(name="Aspen", capacity=8)
    client.force_login(staff("Manager", stored.center))
    browser = Browser(client, "/admin/centers/meetingroom/")
    browser.room = stored
    return browser


def test_changes_are_told_in_the_order_of_the_file(rooms_page):
    """In every worker, whose digests must be the same."""
    row = {"capacity": "9", "is_blocked": "true", "id": rooms_page.room.pk, "provider": "P"}
    _, plan = check("rooms", csv_of(row))

    assert list(plan.rows[0].changes) == ["capacity", "is_blocked", "provider"]


def test_preview_confirm_done(rooms_page):
    stored = rooms_page.room
    rooms_page.send(csv_of({"id": stored.pk, "name": "Aspen <b>", "capacity": "9"}))
    page = rooms_page.client.get(rooms_page.page).content.decode()
    assert "rows.csv" in page
    assert f"{rooms_page.page}check/" in page

    preview = rooms_page.preview()
    assert "Aspen &lt;b&gt;" in preview
    assert '<del class="imports-old">8</del>' in preview
    stored.refresh_from_db()
    assert stored.capacity == 8

    assert "1 changed" in rooms_page.confirm(preview)
    stored.refresh_from_db()
    assert stored.capacity == 9
    assert not Upload.objects.exists()
    assert LogEntry.objects.filter(actor__isnull=False, object_id=stored.pk).exists()


def test_a_preview_with_errors_offers_no_import(rooms_page):
    rooms_page.send(csv_of({"id": rooms_page.room.pk, "capacity": "many"}))
    preview = rooms_page.preview()

    assert "<code>capacity</code>" in preview
    assert "digest" not in preview
    answer = rooms_page.client.post(f"{rooms_page.page}write/", {"digest": ""})
    assert "<code>capacity</code>" in rooms_page.told(answer)


def test_what_changed_since_the_preview_is_previewed_again(rooms_page):
    stored = rooms_page.room
    rooms_page.send(csv_of({"id": stored.pk, "capacity": "9"}))
    preview = rooms_page.preview()
    MeetingRoom.objects.filter(pk=stored.pk).update(capacity=7)

    again = rooms_page.confirm(preview)

    assert "Something changed since the preview" in again
    assert '<del class="imports-old">7</del>' in again
    stored.refresh_from_db()
    assert stored.capacity == 7
    assert "1 changed" in rooms_page.confirm(again)


def test_nothing_to_import(rooms_page):
    rooms_page.send(csv_of({"id": rooms_page.room.pk, "capacity": "8"}))

    assert "nothing to import" in rooms_page.preview()


def test_a_file_that_cannot_be_taken_is_told_on_the_page(rooms_page):
    rooms_page.send(b"name,seats\nA,3\n")

    assert "Unknown columns" in rooms_page.preview()


def test_no_file_and_an_empty_one(rooms_page):
    assert b"Choose a file." in rooms_page.client.post("/admin/centers/meetingroom/import/").content
    assert b"The file is empty." in rooms_page.send(b"").content


def test_a_file_that_is_too_large(rooms_page, monkeypatch):
    monkeypatch.setattr(files, "MAX_BYTES", 3)

    assert b"The file is larger" in rooms_page.send(b"name\nA\n").content


def test_the_file_of_somebody_else_is_not_found(rooms_page, staff):
    rooms_page.send(csv_of({"id": rooms_page.room.pk, "capacity": "9"}))
    rooms_page.client.force_login(staff("Manager"))

    for page in ("", "check/"):
        assert rooms_page.client.get(f"{rooms_page.page}{page}").status_code == 404
    assert rooms_page.client.post(f"{rooms_page.page}write/").status_code == 404


def test_a_role_that_was_taken_away_meanwhile(rooms_page):
    rooms_page.send(csv_of({"id": rooms_page.room.pk, "capacity": "9"}))
    preview = rooms_page.preview()
    Upload.objects.get().user.center_roles.all().delete()
    digest = preview.split('name="digest" value="')[1].split('"')[0]

    answer = rooms_page.client.post(f"{rooms_page.page}write/", {"digest": digest})

    assert answer.status_code == 403


def test_writing_wants_a_post(rooms_page):
    rooms_page.send(csv_of({"id": rooms_page.room.pk, "capacity": "9"}))

    assert rooms_page.client.get(f"{rooms_page.page}write/").status_code == 405


def test_a_defect_is_told_and_logged(rooms_page, monkeypatch, caplog):
    rooms_page.send(csv_of({"id": rooms_page.room.pk, "capacity": "9"}))
    monkeypatch.setattr(files, "read", lambda *args, **kwargs: 1 / 0)

    assert "Something went wrong" in rooms_page.preview()
    assert "An import failed" in caplog.text


def test_files_that_nobody_confirmed_go_after_a_day(rooms_page):
    rooms_page.send(b"name\nA\n")
    Upload.objects.update(created_at=NOON - dt.timedelta(days=400))

    rooms_page.send(b"name\nB\n")

    assert Upload.objects.count() == 1


def test_bookings_that_a_closure_touches_are_told(client):
    from tests.factories_reservations import make_booking

    client.force_login(AdministratorFactory())
    reservation = make_booking()
    local = reservation.start.astimezone(reservation.room.center.zone)
    day = f"{local:%Y-%m-%d}"
    row = a_closure(reservation.room.center, starts_at=f"{day}T00:00", ends_at=f"{day}T23:00")
    browser = Browser(client, "/admin/centers/closure/")
    browser.send(csv_of(row))

    assert "hold their room" in browser.confirm(browser.preview())
