"""Query plans of frequent queries use indexes. Tests compare plans, never times."""

import datetime as dt
import re
from functools import partial

import pytest
import time_machine
from django.db import connection
from django.urls import reverse

from accounts.models import CalendarAddress, OutboxMessage
from accounts.personal_data import erase_expired_rows, find_exported_history
from centers import search
from centers.geo import Coordinates
from centers.models import Center, MeetingRoom
from centers.search import SearchFilters
from payments.models import Payment, PaymentState, Refund, RefundState
from reservations.booking import reminders
from reservations.desk.dashboard.dashboard import build_dashboard
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.receipts.issuing import find_payments_without_credit_note
from roombook.backoffice.audit_log import build_entry
from roombook.backoffice.models import AuditAction, AuditEntry
from tests import factories_centers as make
from tests.factories_people import AdministratorFactory, UserFactory
from tests.world import NOW, World

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)
IS_POSTGRES = connection.vendor == "postgresql"
CENTERS = 3000
DENVER = Coordinates(39.7392, -104.9903)
# Tables that grow with the number of centers or bookings. All others stay small.
LARGE = re.compile(
    "(accounts_(apitoken|calendaraddress|user|outboxmessage|attemptwindow)"
    "|centers_(center|meetingroom|rate|service|openinghours|closure|centerimage|landmark|favorite)"
    "|reservations_(reservation|lineitem|attendee|chosenservice|allowance|allowanceuse"
    "|allowanceentry|priceadjustment|promoredemption)"
    "|payments_(payment|refund|savedcard))$"
)


def get_plans(function):
    """Return each SELECT, UPDATE and DELETE that the function executes, with its plan."""
    found = []

    def explain(execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        if sql.startswith(("SELECT", "UPDATE", "DELETE")):
            explain_prefix = "EXPLAIN " if IS_POSTGRES else "EXPLAIN QUERY PLAN "
            with connection.cursor() as cursor:
                # Bypass the wrapper, which would explain this statement too.
                cursor.cursor.execute(explain_prefix + sql, params)
                found.append((sql, "\n".join(str(row[-1]) for row in cursor.fetchall())))
        return result

    with connection.execute_wrapper(explain):
        function()
    return found


@pytest.fixture
def without_prepared_statements(monkeypatch):
    """Send statements as SQL, not by the names of prepared statements."""
    if IS_POSTGRES:
        monkeypatch.setattr(connection, "prepared", None)


@pytest.fixture
def without_table_scans(without_prepared_statements):
    """Let PostgreSQL scan a whole table only if it can use no index."""
    if IS_POSTGRES:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")


@pytest.fixture
def many_centers(without_prepared_statements):
    model = make.make_center_with_room(name="Model")
    rate, kind = model.rates.get(), model.rooms.get().resource_type
    parts = make.NeighborhoodFactory.create_batch(30)
    centers = []
    for number in range(CENTERS):
        center = make.CenterFactory.build(
            name=f"Center {number}",
            city=f"City {number % 97}",
            neighborhood=parts[number % len(parts)],
            latitude=number * 7919 % 17900 / 100 - 89.5,
            longitude=number * 104729 % 35900 / 100 - 179.5,
        )
        center.update_search_columns()
        centers.append(center)
    centers = Center.objects.bulk_create(centers)
    MeetingRoom.objects.bulk_create(
        MeetingRoom(center=center, name="Room", capacity=8, rate=rate, resource_type=kind)
        for center in centers
    )
    with connection.cursor() as cursor:
        if IS_POSTGRES:
            # Move new entries from the pending list into the index, as a vacuum does.
            cursor.execute("SELECT gin_clean_pending_list('center_search_text')")
        cursor.execute("ANALYZE")


def create_many_bookings():
    """Create two years of cancelled bookings and pending requests, each with a declined payment.

    With only a few rows, the planner could choose any index.
    """
    model = Reservation.objects.order_by("pk").first()
    columns = {
        field.attname: getattr(model, field.attname)
        for field in Reservation._meta.concrete_fields
        if field.name not in {"id", "uid"}
    }
    columns |= {"hold_until": None, "booked_at": NOW}
    cancelled = {"status": Status.CANCELLED, "cancelled_at": NOW, "holds_slot": False}
    request = {"status": Status.PENDING, "holds_slot": True}
    times = ("start", "end", "occupied_from", "occupied_until")
    bookings = Reservation.objects.bulk_create(
        Reservation(
            **columns
            | (cancelled if each % 60 else request)
            | {name: columns[name] + each * HOUR for name in times}
        )
        for each in range(60, 18_000, 6)
    )
    payments = Payment.objects.bulk_create(
        Payment(
            reservation=booking,
            reservation_uid=booking.uid,
            cash_center=booking.room.center,
            gateway="sandbox",
            amount=1,
            currency="USD",
            state=PaymentState.DECLINED,
            lease_until=NOW,
            closed_at=NOW,
            created_at=NOW,
        )
        for booking in bookings
    )
    Refund.objects.bulk_create(
        Refund(payment=payment, amount=1, state=RefundState.DONE, created_at=NOW, done_at=NOW)
        for payment in payments
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def find_scans(plan):
    """Return the large tables that the plan scans."""
    pattern = r"Seq Scan on (\w+)" if IS_POSTGRES else r"SCAN (\w+)(?! USING)"
    return [table for table in re.findall(pattern, plan) if LARGE.match(table)]


def assert_no_table_is_scanned(found):
    assert found
    for sql, plan in found:
        assert not find_scans(plan), f"{sql}\n{plan}"


@pytest.fixture
def world(client):
    with time_machine.travel(NOW, tick=False):
        yield World(client)


def test_location_search_uses_an_index(many_centers):
    filters = SearchFilters(capacity_low=4, only_realtime=True)
    for search_fields, index in (
        ({}, "center_rank"),
        ({"filters": filters}, "center_rank"),
        ({"coordinates": DENVER, "radius_in_miles": 1}, "center_place"),
        ({"coordinates": DENVER}, "center_place"),
        ({"coordinates": DENVER, "radius_in_miles": 500}, "center_place"),
        ({"coordinates": Coordinates(-17.7, 179.9), "radius_in_miles": 500}, "center_place"),
        ({"coordinates": Coordinates(89.9, 10), "radius_in_miles": 500}, "center_place"),
        ({"coordinates": DENVER, "radius_in_miles": 25, "query": "center 12"}, "center_place"),
        ({"coordinates": DENVER, "filters": filters}, "center_place"),
    ):
        found = get_plans(partial(search.search_locations, UserFactory(), **search_fields))
        first = [plan for sql, plan in found if "squared_chord" in sql]

        assert first
        for plan in first:
            assert index in plan, plan
            assert "centers_center" not in find_scans(plan), plan


@pytest.mark.postgres
def test_word_search_uses_an_index(many_centers, without_table_scans):
    found = get_plans(lambda: search.search_locations(UserFactory(), query="center 1234"))
    first = [plan for sql, plan in found if "squared_chord" in sql]
    matching = Center.objects.containing_words(["1234"]).explain()

    assert len(first) == 2  # centers whose name matches, and all others
    assert not [table for plan in first for table in find_scans(plan)]
    assert "center_search_text" in matching


@pytest.mark.parametrize(
    ("search_fields", "index"),
    [
        ({"coordinates": DENVER, "radius_in_miles": 500}, "center_place"),
        pytest.param({"query": "1234"}, "center_search_text", marks=pytest.mark.postgres),
    ],
)
def test_filter_options_of_many_centers_use_an_index(
    many_centers, without_table_scans, settings, search_fields, index
):
    settings.SEARCH_MAX_RESULTS = 1
    found = get_plans(lambda: search.search_locations(UserFactory(), **search_fields))
    options = [plan for sql, plan in found if "FROM centers_neighborhood" in sql.replace('"', "")]

    assert [index in plan for plan in options] == [True], options
    for sql, plan in found:
        assert not {"centers_center", "centers_meetingroom"} & {*find_scans(plan)}, f"{sql}\n{plan}"


@pytest.mark.parametrize(
    "operation",
    [
        *("Search locations", "Check room availability", "Reservation cost", "Get reservation"),
        *("Create reservation", "Checkout", "List reservations"),
    ],
)
def test_frequent_operations_never_scan_a_large_table(world, without_table_scans, operation):
    assert_no_table_is_scanned(get_plans(lambda: world.call(operation)))


def test_second_page_calendars_and_reminders_never_scan_a_large_table(world, without_table_scans):
    cursor = world.call("List reservations").json()["NextCursor"]
    address = reverse("calendar", args=[CalendarAddress.get_secret(world.ada)])
    for function in (
        lambda: world.call("List reservations", Cursor=cursor),
        lambda: world.client.get(address),
        lambda: list(reminders.send_meeting_reminders(now=NOW)),
    ):
        assert_no_table_is_scanned(get_plans(function))


@pytest.mark.postgres
def test_history_in_an_export_uses_indexes(world, without_table_scans):
    entries = [build_entry(Reservation.objects.first(), AuditAction.UPDATE) for _ in range(3000)]
    for number, entry in enumerate(entries):
        entry.object_id = 10**6 + number
    AuditEntry.objects.bulk_create(entries)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    found = get_plans(lambda: list(find_exported_history(world.ada).order_by("pk")[:100]))
    (plan,) = [plan for sql, plan in found if '"backoffice_auditentry"' in sql]

    # A filter would read the whole log until it has found enough.
    assert "Filter: (((content_type_id" not in plan, plan
    assert re.search(r"backoffice_auditentry_pkey .*\n *Index Cond: \(id = ", plan), plan


@pytest.mark.postgres
def test_expired_emails_are_found_by_an_index(without_table_scans):
    fields = {"kind": "test", "state": "sent", "created_at": NOW, "sent_at": NOW}
    sent = (OutboxMessage(to="a@b.example", **fields) for _ in range(3000))
    OutboxMessage.objects.bulk_create(sent)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE accounts_outboxmessage")
    found = get_plans(lambda: erase_expired_rows(now=NOW))
    (plan,) = [plan for sql, plan in found if "accounts_outboxmessage" in sql]

    assert "outbox_message_by_time" in plan, plan


# SQLite uses neither a partial index if the state is a parameter, nor an index on lower-case names
# for a prefix: it scans these tables.
PAGES = (
    pytest.param("", marks=pytest.mark.postgres),
    pytest.param("reservations/reservation/?q=garcia", marks=pytest.mark.postgres),
    pytest.param("accounts/user/?q=garcia", marks=pytest.mark.postgres),
    pytest.param("search/?s=garcia", marks=pytest.mark.postgres),
    "reservations/reservation/",
    "reservations/reservation/?status__exact=Confirmed",
    "centers/center/",
    "centers/meetingroom/",
    "centers/rate/",
    "centers/service/",
    "accounts/user/",
    "payments/payment/",
    "payments/refund/",
    "reservations/reservation/reports/revenue/",
    "reservations/reservation/reports/utilization/",
    "reservations/reservation/reports/cancellations/",
    "reservations/reservation/reports/discounts/",
)


@pytest.mark.parametrize("page", PAGES)
def test_back_office_pages_never_scan_a_large_table(world, without_table_scans, page):
    world.client.force_login(AdministratorFactory())
    assert_no_table_is_scanned(get_plans(lambda: world.client.get(f"/admin/{page}")))


@pytest.mark.postgres
def test_dashboard_uses_partial_indexes_and_credit_notes_are_found_by_receipts(
    world, without_table_scans
):
    create_many_bookings()
    found = get_plans(lambda: build_dashboard(AdministratorFactory(), now=NOW))
    assert_no_table_is_scanned(get_plans(lambda: list(find_payments_without_credit_note(now=NOW))))
    plan = "\n".join(plan for _, plan in found)

    for index in (
        "center_time_zone",
        "payment_void",
        "reservation_by_start",
        "reservation_by_status",
    ):
        assert index in plan, f"{index}\n{plan}"
    # Both indexes find the pending requests alone, at the same cost.
    by_status = "Cond: ((status)::text = 'Pending'::text)"
    assert "reservation_waiting" in plan or by_status in plan, plan
