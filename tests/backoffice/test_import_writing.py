"""Writing an import: all or nothing, whatever happened since the check; kept in the history."""

import datetime as dt
import threading

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from centers.models import Center, MeetingRoom, OpeningHours
from roombook.backoffice.models import AuditAction, AuditEntry
from roombook.imports.resources import SpreadsheetResource
from roombook.imports.results import ImportRefused
from tests.factories_centers import (
    CenterFactory,
    MeetingRoomFactory,
    RateFactory,
    ResourceTypeFactory,
)
from tests.factories_people import AdministratorFactory
from tests.imports import OMAHA, Browser, build_csv, check, closure_row, load, room_row, save

pytestmark = pytest.mark.django_db


# --- All or nothing -----------------------------------------------------------------------------


def test_one_wrong_row_writes_nothing():
    resource, result = check(
        "centers", build_csv(OMAHA | {"rank": "1"}, OMAHA | {"name": "", "rank": "1"})
    )
    with pytest.raises(ImportRefused):
        save(resource, result)

    assert not Center.objects.exists()


def test_row_changed_since_the_check_writes_nothing():
    one, two = CenterFactory(), CenterFactory()
    rows = [{"id": each.pk, "promo_text": "New"} for each in (one, two)]
    resource, result = check("centers", build_csv(*rows))
    Center.objects.filter(pk=two.pk).update(rank=5)

    with pytest.raises(ImportRefused, match="Row 3"):
        save(resource, result)

    assert not Center.objects.filter(promo_text="New").exists()


def test_row_deleted_since_the_check_is_refused():
    stored = MeetingRoomFactory()
    resource, result = check("rooms", build_csv({"id": stored.pk, "capacity": "9"}))
    stored.delete()

    with pytest.raises(ImportRefused):
        save(resource, result)


def test_opening_hours_changed_since_the_check_are_refused():
    center = CenterFactory()
    resource, result = check("centers", build_csv({"id": center.pk, "mon": "09:00-17:00"}))
    OpeningHours.objects.create(center=center, weekday=0, opens=dt.time(8), closes=dt.time(9))

    with pytest.raises(ImportRefused):
        save(resource, result)


@pytest.mark.parametrize("name", ["centers", "closures"])
def test_same_file_checked_twice_adds_rows_once(name):
    content = build_csv({"centers": OMAHA}.get(name) or closure_row(CenterFactory()))
    resource, result = check(name, content)
    other, same = check(name, content)
    save(resource, result)

    with pytest.raises(ImportRefused, match="was added by somebody"):
        save(other, same)


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


@pytest.mark.django_db(transaction=True)
def test_name_taken_since_the_check_is_refused():
    center = CenterFactory()
    resource, result = check("rooms", build_csv(room_row(center, name="First"), room_row(center)))
    MeetingRoomFactory(center=center, name="Aspen")

    with pytest.raises(ImportRefused, match=r"Row 3 .* was added"):
        save(resource, result)

    assert not MeetingRoom.objects.filter(name="First").exists()


@pytest.mark.django_db(transaction=True)
def test_integrity_error_is_refused_with_a_message(monkeypatch):
    center = CenterFactory()
    resource, result = check("rooms", build_csv(room_row(center)))
    MeetingRoomFactory(center=center, name="Aspen")
    monkeypatch.setattr(SpreadsheetResource, "_ensure_still_new", lambda *args: None)

    with pytest.raises(ImportRefused, match="refused a row"):
        save(resource, result)


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
    assert entry.changes["name"] == ["None", "Old Market"]
    assert entry.changes["mon"] == ["None", "08:00-12:30, 14:00-24:00"]


# --- Many rows ----------------------------------------------------------------------------------


def queries(name, content):
    with CaptureQueriesContext(connection) as captured:
        load(name, content)
    return len(captured)


def test_queries_grow_with_batches_not_with_rows():
    center = CenterFactory()
    kind = ResourceTypeFactory()
    RateFactory(center=center, name="Standard")

    def rooms(first, last, seats=8):
        return build_csv(
            *(
                {
                    "center_id": center.pk,
                    "name": f"R{number}",
                    "type": kind.name,
                    "capacity": seats,
                    "rate": "Standard",
                }
                for number in range(first, last)
            )
        )

    def rows_a_query(count, content):
        return count / queries("rooms", content)

    load("rooms", rooms(0, 1))
    assert rows_a_query(1000, rooms(1000, 2000)) > 10
    assert rows_a_query(1000, rooms(1000, 2000, seats=9)) > 10
    # Nothing is written.
    with CaptureQueriesContext(connection) as captured:
        check("rooms", rooms(1000, 2000, seats=9))
    assert len(captured) < 15


def test_preview_of_two_thousand_rows_displays_some(client):
    client.force_login(AdministratorFactory())
    browser = Browser(client, "/admin/centers/center/")
    rows = [{"name": f"C{number}", "city": "X", "time_zone": "UTC"} for number in range(2_000)]

    page = browser.upload(build_csv(*rows))

    assert "2,000 new" in page
    assert "Not all rows are displayed" in page
    assert page.count("<tr") < 400
