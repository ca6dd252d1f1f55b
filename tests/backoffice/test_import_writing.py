"""Writing an import: all or nothing, whatever happened since the check; kept in the history."""

import datetime as dt
import threading

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from centers.models import Center, MeetingRoom, OpeningHours
from roombook.backoffice.models import AuditAction, AuditEntry
from roombook.imports import results
from roombook.imports.results import ImportRefused
from tests.factories_centers import (
    CenterFactory,
    MeetingRoomFactory,
    RateFactory,
    ResourceTypeFactory,
)
from tests.factories_people import AdministratorFactory
from tests.imports import (
    OMAHA,
    Browser,
    build_csv,
    check,
    get_errors,
    load,
    room_row,
    save,
)

pytestmark = pytest.mark.django_db


# --- All or nothing -----------------------------------------------------------------------------


def test_one_wrong_row_writes_nothing():
    content = build_csv(OMAHA | {"rank": "1"}, OMAHA | {"name": "", "rank": "1"})

    assert load("centers", content) == {"new": 1, "errors": 1}
    assert not Center.objects.exists()


def change_row(room):
    MeetingRoom.objects.filter(pk=room.pk).update(capacity=5)


def add_row(room):
    MeetingRoomFactory(center=room.center, name="Aspen")


@pytest.mark.parametrize("change", [change_row, add_row, MeetingRoom.delete])
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
    content = build_csv(*({**OMAHA, "name": f"C{number}"} for number in range(50)))
    CenterFactory()
    both = [check("centers", content) for _ in range(2)]
    together, answers = threading.Barrier(2), []

    def confirm(resource, result):
        together.wait()
        try:
            save(resource, result)
            answers.append("written")
        except ImportRefused:
            answers.append("refused")
        finally:
            connections.close_all()

    threads = [threading.Thread(target=confirm, args=each) for each in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers) == ["refused", "written"]
    assert Center.objects.filter(city="Omaha").count() == 50


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


# --- History ------------------------------------------------------------------------------------


def test_every_change_is_in_the_audit_log_with_its_author():
    ann = AdministratorFactory()
    stored = MeetingRoomFactory(capacity=8)
    row = {"id": stored.pk, "center_id": stored.center_id, "name": stored.name, "capacity": "9"}
    AuditEntry.objects.all().delete()

    load("rooms", build_csv(row), user=ann)

    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action) == (ann, AuditAction.UPDATE)
    assert (entry.object_id, entry.changes) == (stored.pk, {"capacity": ["8", "9"]})
    assert entry.note == "Imported: rows.csv, row 2."

    load("centers", build_csv(OMAHA), user=ann)
    entry = AuditEntry.objects.get(action=AuditAction.CREATE)
    assert entry.changes["name"] == [None, "Old Market"]
    hours = AuditEntry.objects.get(action=AuditAction.UPDATE, content_type=entry.content_type)
    assert hours.changes["mon"] == ["", "08:00-12:30, 14:00-24:00"]
    assert (hours.actor, hours.note) == (ann, entry.note)


# --- Many rows ----------------------------------------------------------------------------------


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


def test_preview_of_many_rows_displays_some(client, monkeypatch):
    monkeypatch.setattr(results, "MAX_DISPLAYED_ROWS", 5)
    client.force_login(AdministratorFactory())
    browser = Browser(client, "/admin/centers/center/")
    rows = [{"name": f"C{number}", "city": "X", "time_zone": "UTC"} for number in range(20)]

    page = browser.upload(build_csv(*rows))

    assert "20 new" in page
    assert "Not all rows are displayed" in page
    assert page.count("<tr") < 15
