"""Numbers without gaps, also if many issue documents at the same time."""

import datetime as dt
from threading import Barrier

import pytest
from django.db import IntegrityError, transaction

from reservations.booking import integrity
from reservations.models import Receipt, ReceiptSeries
from reservations.receipts import issuing
from tests.concurrency import run_concurrently
from tests.factories_reservations import HOUR, NOW, START, make_booking, make_room
from tests.reservations.receipts.helpers import issue, load, make_seller, make_taxed_booking, refund

WRITERS = 16


@pytest.mark.django_db
def test_document_that_is_rolled_back_leaves_no_gap():
    make_seller()
    booking = make_taxed_booking()
    with transaction.atomic():
        issue(booking)
        transaction.set_rollback(True)

    assert [each.number for each in issue(booking)] == ["2027-000001"]


@pytest.mark.django_db
def test_series_begin_again_with_the_year_of_the_center():
    make_seller()
    booking = make_taxed_booking()
    # In Denver it is still the old year.
    at = dt.datetime(2028, 1, 1, 6, tzinfo=dt.UTC)
    issue(booking, now=at)
    refund(booking.payments.get(), "10", now=at)

    assert [each.number for each in issue(booking, now=at + HOUR)] == [
        *("2027-000001", "CN-2028-000001")
    ]


def make_bookings(count):
    make_seller()
    room = make_room()
    return [
        load(make_booking(room=room, start=START + number * HOUR, hours=1, now=NOW))
        for number in range(count)
    ]


def issue_at_once(bookings):
    """Two requests for each booking at once, and the credit notes of all in between."""

    def issue_one(booking):
        try:
            issue(booking)
            refund(booking.payments.get(), "5")
        finally:
            issuing.issue_credit_notes(now=NOW)

    run_concurrently([lambda each=each: issue_one(each) for each in bookings * 2])


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_16_writers_at_once_leave_no_gap_and_issue_nothing_twice():
    bookings = make_bookings(WRITERS // 2)
    issue_at_once(bookings)

    assert list(integrity.find_problems(now=NOW)) == []
    receipts = Receipt.objects.filter(series__name="2027").order_by("number_in_series")
    assert [each.number_in_series for each in receipts] == list(range(1, len(bookings) + 1))
    notes = ReceiptSeries.objects.get(name="CN-2027")
    assert notes.receipts.count() == notes.last_number >= len(bookings)


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_two_writers_without_the_lock_take_the_same_number(monkeypatch):
    """The control: it shows that the test above can fail."""
    both_have_read = Barrier(2)

    def take_number_without_lock(name):
        series = ReceiptSeries.objects.get(name=name)
        both_have_read.wait(timeout=60)
        series.last_number += 1
        series.save(update_fields=["last_number"])
        return series

    bookings = make_bookings(2)
    ReceiptSeries.objects.create(name="2027")
    monkeypatch.setattr(issuing, "_take_number", take_number_without_lock)

    calls = [lambda each=each: issue(each)[0].number for each in bookings]
    answers = run_concurrently(calls, losers=(IntegrityError,))

    assert sorted(answers) == ["2027-000001", "IntegrityError"]
