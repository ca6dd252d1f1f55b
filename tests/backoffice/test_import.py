"""The pages that import tables of rows: who may, and a file from its preview to its end."""

import datetime as dt
import re
from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from centers.models import Center, MeetingRoom, OpeningHours
from roombook.backoffice.models import AuditAction, AuditEntry
from roombook.imports import files
from roombook.imports.models import Upload
from roombook.imports.resources import RESOURCES
from roombook.imports.results import ImportRefused
from tests.concurrency import run_concurrently
from tests.factories_centers import (
    CenterFactory,
    MeetingRoomFactory,
    RateFactory,
    ResourceTypeFactory,
    open_every_day,
)
from tests.factories_people import AdministratorFactory
from tests.imports import (
    NOON,
    OMAHA,
    Browser,
    build_csv,
    check,
    get_cells,
    get_errors,
    load,
    room_row,
    save,
)

pytestmark = pytest.mark.django_db


def test_rows_of_other_centers_are_errors(staff):
    own, other = MeetingRoomFactory(), MeetingRoomFactory()
    manager = staff("Manager", own.center)

    def wrong(row):
        return get_cells(get_errors("rooms", build_csv(row), manager))

    assert wrong({"id": own.pk, "capacity": "9"}) == []
    assert wrong({"id": other.pk, "capacity": "9"}) == [(2, "id")]
    assert wrong(room_row(other.center)) == [(2, "center_id")]
    named = room_row(other.center) | {"center": other.center.name}
    del named["center_id"]
    assert wrong(named) == [(2, "center")]


def test_manager_of_some_centers_cannot_add_a_center(staff):
    own, other = CenterFactory(), CenterFactory()
    manager = staff("Manager", own)

    assert get_cells(get_errors("centers", build_csv(OMAHA), manager)) == [(2, "")]
    row = {"id": other.pk, "rank": "1"}
    assert get_cells(get_errors("centers", build_csv(row), manager)) == [(2, "id")]
    named = {"name": other.name, "city": "Denver", "state": "CO", "rank": "1"}
    assert get_cells(get_errors("centers", build_csv(named), manager)) == [(2, "")]
    assert get_errors("centers", build_csv({"id": own.pk, "rank": "1"}), manager) == []


@pytest.fixture
def rooms_page(client, staff):
    room = MeetingRoomFactory(name="Aspen", capacity=8)
    client.force_login(staff("Manager", room.center))
    browser = Browser(client, "/admin/centers/meetingroom/")
    browser.room = room
    return browser


def test_changes_are_in_the_order_of_the_file(rooms_page):
    """In every worker, whose digests must be the same."""
    row = {"capacity": "9", "is_blocked": "true", "id": rooms_page.room.pk, "provider": "P"}
    _, result = check("rooms", build_csv(row))

    assert list(result.rows[0].changes) == ["capacity", "is_blocked", "provider"]


def test_templates_can_be_imported_one_after_the_other_into_an_empty_database(client):
    client.force_login(AdministratorFactory(email="customer@example.com"))
    for name, resource in RESOURCES.items():
        page = f"/admin/{resource._meta.model._meta.label_lower.replace('.', '/')}/import/"
        # A workbook is read by a process of its own, and what it means is tested elsewhere.
        extension = "xlsx" if name == "rates" else "csv"
        template = client.get(page, {"template": extension})
        assert f'filename="{name}-template.{extension}"' in template.headers["Content-Disposition"]
        content = b"".join(template)
        assert load(name, content) == {"new": 2 if name == "types" else 1}, name
    room = MeetingRoom.objects.get()
    assert (room.center.name, room.lowest_rate) == ("Downtown", "$40.00/hour")
    assert room.center.opening_hours.count() == 5


def test_preview_confirmed_is_written(rooms_page):
    room = rooms_page.room
    preview = rooms_page.upload(build_csv({"id": room.pk, "name": "Aspen <b>", "capacity": "9"}))

    assert "<ins>Aspen &lt;b&gt;</ins>" in preview
    assert "<del>8</del> <ins>9</ins>" in preview
    room.refresh_from_db()
    assert room.capacity == 8

    done = rooms_page.confirm()

    assert "Imported: 0 new, 1 changed, 0 unchanged." in done
    room.refresh_from_db()
    assert room.capacity == 9
    assert not Upload.objects.exists()
    entry = AuditEntry.objects.filter(actor__isnull=False).get(object_id=room.pk)
    assert (entry.note, entry.changes["capacity"]) == ("Imported: rows.csv, row 2.", ["8", "9"])
    rooms_page.upload(build_csv({"id": room.pk, "capacity": "10"}))
    MeetingRoom.objects.update(capacity=7)
    assert "Something changed since the preview: upload the file again." in rooms_page.confirm()


def test_values_that_are_cleared_are_counted_and_must_be_confirmed(rooms_page):
    center = rooms_page.room.center
    rate = RateFactory(center=center, name="Standard")
    rooms = [MeetingRoomFactory(center=center, rate=rate, provider="P") for _ in range(3)]
    rooms_page.room.rate = rate
    rooms_page.room.save()
    rows = [{"id": each.pk, "provider": "P", "rate": ""} for each in rooms]
    rows += [{"id": rooms_page.room.pk, "provider": "", "rate": "Standard"}]
    rows[0]["provider"] = ""

    preview = rooms_page.upload(build_csv(*rows))

    assert "Clear these values (1 room loses its provider; 3 rooms lose their rate)" in preview
    assert re.search(r'<input type="checkbox" name="may_clear"[^>]* required', preview)
    again = rooms_page.confirm()
    assert "Confirm that values are to be cleared: upload the file again." in again
    assert MeetingRoom.objects.filter(rate=rate).count() == 4
    rooms_page.upload(build_csv(*rows))
    assert "3 changed" in rooms_page.confirm(may_clear="on")
    assert MeetingRoom.objects.filter(rate=rate).get() == rooms_page.room


def test_hours_of_empty_cells_are_cleared_and_closed_days_are_not(staff):
    center = CenterFactory()
    open_every_day(center)
    row = {"id": center.pk, "mon": "", "tue": "closed", "sun": "", "promo_text": ""}

    _, result = check("centers", build_csv(row))

    assert result.describe_losses("center") == "1 center loses its mon; 1 center loses its sun"


def test_file_with_errors_or_without_changes_cannot_be_confirmed(rooms_page, monkeypatch):
    room = rooms_page.room
    for content, words in (
        (build_csv({"id": room.pk, "capacity": "many"}), "Write a whole number"),
        (build_csv({"id": room.pk, "capacity": "8"}), "nothing to import"),
        (b"name,seats\nA,3\n", "Unknown columns"),
        (b"", "The file is empty."),
    ):
        page = rooms_page.upload(content)
        assert words in page
        assert 'name="digest"' not in page
    page = rooms_page.client.post("/admin/centers/meetingroom/import/", {"format": "0"})
    assert "Choose a file." in page.text
    monkeypatch.setattr(files, "MAX_ROWS_OF_A_PAGE", 1)
    assert "more than 1 rows" in rooms_page.upload(b"name,center\nA,B\nC,D\n")
    monkeypatch.setattr(files, "MAX_BYTES", 3)
    assert "The file is larger" in rooms_page.upload(b"name\nA\n")


def test_file_of_another_list_or_user_cannot_be_confirmed(rooms_page, staff):
    page = rooms_page.upload(build_csv({"id": rooms_page.room.pk, "capacity": "9"}))
    rates = Browser(rooms_page.client, "/admin/centers/rate/")
    assert "upload it again" in rates.confirm(page)
    rooms_page.client.force_login(staff("Manager"))
    assert "upload it again" in rooms_page.confirm()
    rooms_page.room.refresh_from_db()
    assert rooms_page.room.capacity == 8


def test_confirmation_needs_post_and_the_role_and_ignores_what_is_forged(rooms_page):
    url = "/admin/centers/meetingroom/process_import/"
    assert rooms_page.client.get(url).status_code == 405
    for capacity in ("9", "10"):
        rooms_page.upload(build_csv({"id": rooms_page.room.pk, "capacity": capacity}))
        if capacity == "9":
            assert "1 changed" in rooms_page.confirm(format="x", resource="9")
    Upload.objects.get().user.center_roles.all().delete()

    rooms_page.confirm()

    assert rooms_page.response.status_code == 403


def test_unconfirmed_files_are_deleted_after_a_day(rooms_page):
    rooms_page.upload(build_csv({"id": rooms_page.room.pk, "capacity": "9"}))
    Upload.objects.update(created_at=NOON - dt.timedelta(days=400))

    Browser(rooms_page.client, "/admin/centers/rate/").upload(b"id\n1\n")

    assert Upload.objects.get().sheet == "rates"


def test_one_wrong_row_writes_nothing():
    content = build_csv(OMAHA | {"rank": "1"}, OMAHA | {"name": "", "rank": "1"})

    assert load("centers", content) == {"new": 1, "errors": 1}
    assert not Center.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda room: MeetingRoom.objects.filter(pk=room.pk).update(capacity=5),
        lambda room: MeetingRoomFactory(center=room.center, name="Aspen"),
        MeetingRoom.delete,
    ],
    ids=["changed", "added", "deleted"],
)
def test_file_that_would_do_something_else_than_its_preview_writes_nothing(change):
    room = MeetingRoomFactory(name="Birch", capacity=8)
    rows = room_row(room.center), room_row(room.center, name="Birch", capacity="9")
    resource, result = check("rooms", build_csv(*rows))
    change(room)

    with pytest.raises(ImportRefused, match="Something changed since the preview"):
        save(resource, result)

    assert not MeetingRoom.objects.filter(capacity=9).exists()


def test_opening_hours_changed_since_the_preview_are_refused():
    center = CenterFactory()
    resource, result = check("centers", build_csv({"id": center.pk, "mon": "09:00-17:00"}))
    OpeningHours.objects.create(center=center, weekday=0, opens=dt.time(8), closes=dt.time(9))

    with pytest.raises(ImportRefused):
        save(resource, result)


@pytest.mark.postgres
def test_preview_does_not_lock_rows_that_a_confirmation_locks():
    room = MeetingRoomFactory(capacity=8)
    content = build_csv({"id": room.pk, "capacity": "8"})

    def count_locks(run):
        with CaptureQueriesContext(connection) as captured:
            run("rooms", content)
        return sum("FOR NO KEY UPDATE" in each["sql"] for each in captured)

    # Customers who book the room would wait until the whole file is checked.
    assert (count_locks(check), count_locks(load)) == (0, 1)


@pytest.mark.django_db(transaction=True)
def test_same_file_on_two_connections_adds_rows_once():
    content = build_csv(*({**OMAHA, "name": f"C{number}"} for number in range(20)))
    CenterFactory()
    calls = [partial(save, *check("centers", content)) for _ in range(2)]

    answers = run_concurrently(calls, losers=(ImportRefused,))

    assert answers.count("ImportRefused") == 1
    assert Center.objects.filter(city="Omaha").count() == 20


def test_rows_that_swap_their_names_are_refused():
    one, two = (MeetingRoomFactory(name=name) for name in ("One", "Two"))
    MeetingRoom.objects.filter(pk=two.pk).update(center=one.center)
    rows = [{"id": one.pk, "name": "Two"}, {"id": two.pk, "name": "Three"}]

    assert get_errors("rooms", build_csv(rows[0])) == [
        (2, "name", "This center already has a room with this name.")
    ]
    rows[1]["name"] = "One"
    assert load("rooms", build_csv(*rows)) == {"errors": 2}
    assert MeetingRoom.objects.get(pk=one.pk).name == "One"


def test_every_change_is_in_the_audit_log_with_its_author():
    ann = AdministratorFactory()

    load("centers", build_csv(OMAHA), user=ann)

    entry = AuditEntry.objects.get(action=AuditAction.CREATE, actor=ann)
    assert entry.note == "Imported: rows.csv, row 2."
    assert entry.changes["name"] == [None, "Old Market"]
    hours = AuditEntry.objects.get(action=AuditAction.UPDATE, content_type=entry.content_type)
    assert hours.changes["mon"] == ["", "08:00-12:30, 14:00-24:00"]
    assert (hours.actor, hours.note) == (ann, entry.note)


# Savepoints, the audit log and one for each constraint; none for what the file leaves as it is.
MAX_QUERIES_A_ROW = 17


def queries(name, content):
    with CaptureQueriesContext(connection) as captured:
        load(name, content)
    return len(captured)


def test_queries_of_a_row_do_not_grow_with_the_file():
    center, kind = CenterFactory(), ResourceTypeFactory()
    RateFactory(center=center, name="Standard")
    row = {"center_id": center.pk, "type": kind.name, "capacity": 8, "rate": "Standard"}

    def count(first, last, **values):
        rows = (row | values | {"name": f"R{number}"} for number in range(first, last))
        return queries("rooms", build_csv(*rows))

    count(0, 1)
    assert count(10, 40) - count(40, 50) <= 20 * MAX_QUERIES_A_ROW
    assert count(10, 40, capacity=9) - count(40, 50, capacity=9) <= 20 * MAX_QUERIES_A_ROW
