"""The lists of payments, refunds and disputes, also with many rows."""

import csv
import datetime as dt
import io
from decimal import Decimal

import pytest
from django.db import connection
from django.db.models import F
from django.urls import reverse

from payments.models import Dispute, Payment, Refund
from reservations.models import Reservation
from tests.backoffice.reading import list_rows
from tests.factories_people import SavedCardFactory, UserFactory
from tests.factories_reservations import (
    NOW,
    PaymentFactory,
    ReservationFactory,
    make_room,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

DAY = dt.timedelta(days=1)


def page(name):
    return reverse(f"admin:payments_{name}_changelist")


def listed(office, name, **query):
    return [row.pk for row in list_rows(office, f"payments.{name}", **query)]


def displayed(office, name, **query):
    """The rows of the page, whose days are those of a time zone."""
    return [row.pk for row in office.get(page(name), query).context["cl"].result_list]


def paid(reservation, **fields):
    return PaymentFactory(reservation=reservation, **{"amount": Decimal(50), **fields})


def given_back(payment, *, state="done", at=NOW):
    return Refund.objects.create(
        payment=payment, amount=Decimal(5), state=state, created_at=at, done_at=at
    )


def disputed(payment, number, *, closed_at=None, currency="USD"):
    return Dispute.objects.create(
        payment=payment,
        reference=f"dp_{number}",
        amount=Decimal(50),
        currency=currency,
        status="lost" if closed_at else "needs_response",
        opened_at=NOW - DAY,
        respond_by=NOW + DAY,
        closed_at=closed_at,
    )


@pytest.fixture
def grace():
    return UserFactory(
        email="grace@navy.example", first_name="Grace", last_name="Hopper", company_name="Navy"
    )


@pytest.fixture
def hers(grace):
    # Another number than those of all reservations.
    ReservationFactory.create_batch(2)
    reservation = ReservationFactory(user=grace)
    payment = paid(reservation, reference="pi_123", card_last4="4242", amount=Decimal(1250))
    return payment, given_back(payment), disputed(payment, 1)


def test_search_finds_payments_by_number_and_customer_and_nothing_else(office, grace, hers):
    payment, refund, dispute = hers
    card = SavedCardFactory(user=grace)
    other = paid(ReservationFactory())
    given_back(other), disputed(other, 2), SavedCardFactory()
    terms = ["grace@navy.example", "Hopper", "navy", "pi_123", str(payment.reservation_id)]
    terms += [str(payment.key), "4242", "$1,250.00"]
    found = {
        ("payment", payment): [*terms, "1250"],
        ("refund", refund): [*terms, str(refund.key)],
        ("dispute", dispute): [*terms, "dp_1"],
        ("savedcard", card): ["grace hop"],
    }

    for (name, row), searches in found.items():
        for term in searches:
            assert listed(office, name, q=term) == [row.pk], (name, term)
        for term in ("²", "%", "9" * 40, "a@b@c", "#4711"):
            assert listed(office, name, q=term) == [], (name, term)
    closed = disputed(other, 3, closed_at=NOW)
    assert listed(office, "dispute")[-1] == closed.pk, "open disputes come first"
    assert payment.pk in listed(office, "payment", q=f"#{payment.pk}")
    assert refund.pk in listed(office, "refund", q=str(refund.pk))


def test_payment_lists_can_be_filtered(office):
    room = make_room()
    ours = paid(ReservationFactory(room=room))
    last_month = paid(ReservationFactory(), state="voided", at=NOW - 5 * DAY)
    both = [ours.pk, last_month.pk]
    for query, found in (
        *(({"made": each}, [ours.pk]) for each in ("today", "month")),
        *(({"made": each}, both) for each in ("week", "quarter")),
        ({"made": "last-quarter"}, []),
        ({"made": "last-month"}, [last_month.pk]),
        ({"created_at_from": "2027-02-01", "created_at_to": "2027-02-28"}, [last_month.pk]),
        ({"state__exact": "voided"}, [last_month.pk]),
        ({"gateway": "stripe"}, []),
        ({"reservation__room__center__id__exact": room.center_id}, [ours.pk]),
    ):
        assert listed(office, "payment", **query) == found, query


def test_days_of_payments_are_those_of_the_selected_center_or_of_all_own(office, client, staff):
    """At NOW it is Tuesday, 5 in the morning, in Auckland, and Monday in UTC."""
    room, same = (make_room(time_zone_id="Pacific/Auckland") for _ in range(2))
    make_room(time_zone_id="America/Denver")
    monday = paid(ReservationFactory(room=room, start=NOW + DAY), at=NOW - dt.timedelta(hours=6))
    tuesday = paid(ReservationFactory(room=room), at=NOW)
    center = {"reservation__room__center__id__exact": room.center_id}

    assert displayed(office, "payment", made="today") == [tuesday.pk, monday.pk]
    assert displayed(office, "payment", made="today", **center) == [tuesday.pk]
    refunds = [given_back(payment, at=payment.created_at) for payment in (monday, tuesday)]
    center = {"payment__reservation__room__center__id__exact": room.center_id}
    assert displayed(office, "refund", made="today", **center) == [refunds[1].pk]
    client.force_login(staff("Accountant", room.center, same.center))
    assert displayed(client, "payment", made="today") == [tuesday.pk]


def export(client, name, **query):
    """The rows of the exported list, as dictionaries."""
    url = reverse(f"admin:payments_{name}_list_export", args=["csv"])
    response = client.get(url, query)
    assert response.status_code == 200
    text = response.getvalue().decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def test_exported_rows_have_customer_center_and_local_times(office, grace):
    room = make_room()
    fields = {"reference": "=1+1", "fee": Decimal("1.75"), "gateway": "cash"}
    payment = paid(ReservationFactory(user=grace, room=room), **fields)
    paid(ReservationFactory(), state="voided", at=NOW - 5 * DAY)
    given_back(payment, state="outside"), given_back(payment, state="refused")
    common = {"Customer": "Grace Hopper", "Company": "Navy", "Center": room.center.name}
    common |= {"Created (local)": "2027-03-01 09:00", "Time zone": "America/Denver"}

    assert len(export(office, "payment")) == 2
    [row] = export(office, "payment", q="grace@navy.example")
    [refund] = export(office, "refund", state__exact="outside")

    own = {"Amount": "50.00", "Fee": "1.75", "Paid by": "Cash", "Reference": "'=1+1"}
    assert row | common | own == row
    assert refund | common | {"Amount": "5.00", "State": "refunded manually"} == refund


@pytest.mark.parametrize(
    ("name", "most", "columns"),
    [
        ("payments_payment", 5000, {"created"}),
        ("payments_refund", 2000, {"created"}),
        ("payments_dispute", 5000, set()),
        ("reservations_reservation", 5000, {"when"}),
    ],
)
def test_list_neither_counts_all_rows_reads_choices_of_filters_nor_sorts_without_an_index(
    office, hers, name, most, columns, django_assert_max_num_queries
):
    with django_assert_max_num_queries(14) as captured:
        shown = office.get(reverse(f"admin:{name}_changelist"))

    queries = [each["sql"] for each in captured.captured_queries]
    assert not [sql for sql in queries if "DISTINCT" in sql or "COUNT(" in sql]
    assert len([sql for sql in queries if f"LIMIT {most}" in sql]) == 1
    assert set(shown.context["cl"].sortable_by) == columns


@pytest.mark.postgres
def test_lists_use_an_index(hers):
    """The tables are small, so sequential scans and sorts are made expensive."""
    ways = {
        "payment_by_time": Payment.objects.order_by("-created_at", "-pk")[:50],
        "payment_by_last4": Payment.objects.filter(card_last4="4242"),
        "payment_by_amount": Payment.objects.filter(amount=1250),
        "payment_by_reference": Payment.objects.filter(reference="pi_123"),
        "refund_by_time": Refund.objects.order_by("-created_at", "-pk")[:50],
        "refund_by_state": Refund.objects.filter(state="refused").order_by("-created_at"),
        "dispute_open_first": Dispute.objects.order_by(
            F("closed_at").desc(nulls_first=True), "respond_by", "pk"
        )[:50],
        "reservation_by_start": Reservation.objects.order_by("-start", "-pk")[:50],
        "reservation_by_status": Reservation.objects.filter(status="Pending").order_by("start"),
    }
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
    for index, rows in ways.items():
        assert index in rows.explain(), rows.explain()
