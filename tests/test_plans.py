"""Query plans of frequent queries use indexes. Tests compare plans, never times."""

import datetime as dt
import re

import pytest
from django.db import connection
from django.urls import reverse

from accounts.models import CalendarAddress, OutboxMessage
from accounts.personal_data import erase_expired_rows, find_exported_history
from payments.models import Payment, PaymentState, Refund, RefundState
from reservations import gauges
from reservations.booking import reminders
from reservations.desk.dashboard.dashboard import build_dashboard
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.receipts.issuing import find_payments_without_credit_note
from roombook.backoffice.audit_log import build_entry
from roombook.backoffice.models import AuditAction, AuditEntry
from tests.factories_people import AdministratorFactory
from tests.world import NOW

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)
IS_POSTGRES = connection.vendor == "postgresql"
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
def world(world_copy):
    return world_copy


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
def test_dashboard_and_metrics_use_partial_indexes_and_credit_notes_are_found_by_receipts(
    world, without_table_scans
):
    create_many_bookings()
    assert_no_table_is_scanned(get_plans(lambda: gauges.read_gauges(now=NOW)))
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
