"""Writing an import: all or nothing, whatever happened since the check; kept in the history."""

import datetime as dt
import threading

import pytest
from auditlog.models import LogEntry
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from centers.models import Center, MeetingRoom, OpeningHours
from roombook.imports import writing
from roombook.imports.plan import Origin
from roombook.imports.writing import ImportRefused, write
from tests.factories_centers import (
    CenterFactory,
    MeetingRoomFactory,
    RateFactory,
    ResourceTypeFactory,
)
from tests.factories_people import AdministratorFactory
from tests.imports import NOON, OMAHA, Browser, a_closure, a_room, check, csv_of, load

pytestmark = pytest.mark.django_db


# --- All or nothing -----------------------------------------------------------------------------


def test_one_wrong_row_and_nothing_is_written():
    sheet, plan = check("centers", csv_of(OMAHA | {"rank": "1"}, OMAHA | {"name": "", "rank": "1"}))
    with pytest.raises(ImportRefused):
        write(sheet, plan, Origin(file="x.csv", at=NOON))

    assert not Center.objects.exists()


def test_a_row_that_changed_meanwhile_and_nothing_is_written():
    one, two = CenterFactory(), CenterFactory()
    rows = [{"id": each.pk, "promo_text": "New"} for each in (one, two)]
    sheet, plan = check("centers", csv_of(*rows))
    Center.objects.filter(pk=two.pk).update(rank=5)

    with pytest.raises(ImportRefused, match="Row 3"):
        write(sheet, plan, Origin(file="x.csv", at=NOON))

    assert not Center.objects.filter(promo_text="New").exists()


def test_a_row_that_went_meanwhile():
    stored = MeetingRoomFactory()
    sheet, plan = check("rooms", csv_of({"id": stored.pk, "capacity": "9"}))
    stored.delete()

    with pytest.raises(ImportRefused):
        write(sheet, plan, Origin(file="x.csv", at=NOON))


def test_hours_that_changed_meanwhile():
    center = CenterFactory()
    sheet, plan = check("centers", csv_of({"id": center.pk, "mon": "09:00-17:00"}))
    OpeningHours.objects.create(center=center, weekday=0, opens=dt.time(8), closes=dt.time(9))

    with pytest.raises(ImportRefused):
        write(sheet, plan, Origin(file="x.csv", at=NOON))


@pytest.mark.parametrize("name", ["centers", "closures"])
def test_the_same_file_twice_at_once_adds_its_rows_once(name):
    content = csv_of({"centers": OMAHA}.get(name) or a_closure(CenterFactory()))
    sheet, plan = check(name, content)
    other, same = check(name, content)
    write(sheet, plan, Origin(file="x.csv", at=NOON))

    with pytest.raises(ImportRefused, match="was added by somebody"):
        write(other, same, Origin(file="x.csv", at=NOON))


@pytest.mark.django_db(transaction=True)
def test_two_at_once_on_two_connections():
    content = csv_of(*({**OMAHA, "name": f"C{number}"} for number in range(50)))
    CenterFactory()
    both = [check("centers", content) for _ in range(2)]
    together, answers = threading.Barrier(2), []

    def confirm(sheet, plan):
        together.wait()
        try:
            write(sheet, plan, Origin(file="x.csv", at=NOON))
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
def test_a_name_that_was_taken_meanwhile():
    center = CenterFactory()
    sheet, plan = check("rooms", csv_of(a_room(center, name="First"), a_room(center)))
    MeetingRoomFactory(center=center, name="Aspen")

    with pytest.raises(ImportRefused, match=r"Row 3 .* was added"):
        write(sheet, plan, Origin(file="x.csv", at=NOON))

    assert not MeetingRoom.objects.filter(name="First").exists()


@pytest.mark.django_db(transaction=True)
def test_what_only_the_database_sees_is_told_in_words(monkeypatch):
    center = CenterFactory()
    sheet, plan = check("rooms", csv_of(a_room(center)))
    MeetingRoomFactory(center=center, name="Aspen")
    monkeypatch.setattr(writing, "_make_sure_of_new", lambda *args: None)

    with pytest.raises(ImportRefused, match="refused a row"):
        write(sheet, plan, Origin(file="x.csv", at=NOON))


# --- History ------------------------------------------------------------------------------------


def test_every_change_is_in_the_history_with_who():
    ann = AdministratorFactory()
    stored = MeetingRoomFactory(capacity=8)
    row = {"id": stored.pk, "center_id": stored.center_id, "name": stored.name, "capacity": "9"}
    LogEntry.objects.all().delete()

    load("rooms", csv_of(row), actor=ann)

    entry = LogEntry.objects.get()
    assert (entry.actor, entry.action) == (ann, LogEntry.Action.UPDATE)
    assert (entry.object_id, entry.changes) == (stored.pk, {"capacity": ["8", "9"]})
    assert entry.additional_data == {"note": "Imported: rows.csv, row 2."}

    load("centers", csv_of(OMAHA), actor=ann)
    entry = LogEntry.objects.get(action=LogEntry.Action.CREATE)
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
        return csv_of(
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


def test_ten_thousand_rows_are_told_of_while_they_are_checked(client):
    client.force_login(AdministratorFactory())
    browser = Browser(client, "/admin/centers/center/")
    rows = [{"name": f"C{number}", "city": "X", "time_zone": "UTC"} for number in range(10_000)]

    browser.send(csv_of(*rows))
    page = browser.preview()

    assert [news["done"] for news in browser.news][:3] == [0, 200, 400]
    assert browser.news[-1]["of"] == 10_000
    assert "10,000" in page
    assert page.count("<tr>") < 400
