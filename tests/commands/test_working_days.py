"""The working days of the demo data: what staff see after the first `make run` (B20)."""

import datetime as dt
from collections import defaultdict
from functools import partial
from types import SimpleNamespace

import pytest
import time_machine
from django.core import mail

from accounts import outbox
from accounts.models import OutboxMessage, User
from centers.models import Center, MeetingRoom
from centers.span import Span
from payments.models import Payment, PaymentPurpose, Refund
from reservations import availability
from reservations.booking import integrity, reminders
from reservations.demo import working_days
from reservations.demo.accounts import STAFF
from reservations.desk.dashboard.alerts import find_alerts
from reservations.desk.today import load_day
from reservations.local_days import LocalDays
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.reports import month_end, revenue, utilization
from reservations.reports.selection import ReportSelection
from tests.conftest import use_tiny_pictures
from tests.faults.size import LONG

HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
MORNING = "2027-03-03T10:40-07:00"  # a Wednesday at Union Station
# Only the long form makes the bookings of these.
STARTS = [
    "2026-12-31T23:55-07:00",
    "2027-03-14T03:05-06:00",  # a Sunday, and the clock has just skipped an hour
]
# These are only planned, which takes less time.
PLANNED_STARTS = [
    *STARTS,
    "2026-12-31T14:55+00:00",  # Tokyo closes in five minutes, for three days
    "2027-11-07T01:30-07:00",  # the second 1:30 of this day
    "2028-02-29T03:00-07:00",
    "2039-10-02T02:05+11:00",
]


@pytest.fixture(scope="module", params=[MORNING, *(STARTS if LONG else [])])
def seeded(request, seed):
    """The demo of a start. Only the first has all meetings, because each takes time."""
    now = dt.datetime.fromisoformat(request.param)
    with pytest.MonkeyPatch.context() as patch, time_machine.travel(now, tick=False):
        use_tiny_pictures(patch)
        if request.param != MORNING:
            patch.setattr(working_days, "BUSY_SHARES", (0.1, 0.05, 0.02))
            patch.setattr(working_days, "OTHER_SHARES", (0.05, 0.01, 0.002))
        seed()
    return SimpleNamespace(now=now, is_full=request.param == MORNING)


@pytest.fixture
def now(seeded, db):
    with time_machine.travel(seeded.now, tick=False):
        yield seeded.now


@pytest.fixture
def full(seeded, now):
    if not seeded.is_full:
        pytest.skip("needs all meetings")
    return now


def test_integrity_checks_find_nothing(now):
    assert list(integrity.find_problems(now=now)) == []


def test_today_has_each_special_case(now):
    found = defaultdict(list)
    for center in load_day(User.objects.get(email=STAFF), None, None, now=now)["centers"]:
        for each in center["arrivals"]:
            found[each["urgency"].label].append(each)

    (late,) = found["Has begun, not checked in"]
    assert now - HOUR < late["reservation"].start < now
    # The rest of an overrunning meeting, which the same customer has in the same room.
    (rest,) = [each for each in found["Here"] if each["reservation"].notes.exists()]
    assert rest["unpaid"]
    rest = rest["reservation"]
    before = Reservation.objects.get(user=rest.user_id, room=rest.room_id, end=rest.start)
    assert before.is_checked_in
    assert len(found["Here"]) >= 2
    assert found["Over, not checked in"] == []
    # It was earlier today, or shortly before midnight.
    missed = Reservation.objects.filter(status=Status.NO_SHOW, start__gt=now - 3 * HOUR)
    assert missed.exists()


def test_two_requests_wait_and_one_expires_soon(now, settings):
    pending = Reservation.objects.filter(status=Status.PENDING).order_by("booked_at")

    expire = [each.booked_at + settings.PENDING_HOURS * HOUR - now for each in pending]
    assert len(expire) == 2
    assert dt.timedelta(0) < expire[0] <= 2 * HOUR
    assert expire[1] > DAY


def test_refund_more_expensive_change_promo_code_and_unpaid_account_exist(now):
    cancelled = Reservation.objects.get(
        status=Status.CANCELLED, user__email="hugo@casa-martin.example"
    )
    assert cancelled.payments.get().state == "refunded"
    reduced = Reservation.objects.get(price_adjustments__amount__lt=0)
    assert reduced.payments.get().refunds.get().amount > 0
    change = Payment.objects.get(purpose=PaymentPurpose.CHANGE)
    assert (change.state, change.gateway) == ("captured", "sandbox")
    assert change.amount > 0
    assert Reservation.objects.filter(
        promo_code__code="WELCOME10", status=Status.CONFIRMED
    ).exists()
    owed = Payment.objects.receivable()
    assert owed.filter(reservation__start__lt=now).exists()
    assert owed.filter(reservation__start__gt=now).exists()
    assert not Refund.objects.due_by_hand().exists()


def test_dashboard_alerts_only_two_bookings_in_a_closure(now):
    (alert,) = find_alerts(User.objects.get(email=STAFF), now)

    assert alert.title == "2 bookings to resolve"
    assert alert.detail.startswith("Move, cancel or e-mail. The first: Office 12 at Union Station")


def test_only_the_payment_link_is_still_to_be_sent(now, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"

    assert list(reminders.send_meeting_reminders(now=now)) == []
    assert OutboxMessage.objects.count() > 100
    assert len(list(outbox.send_due_messages(clock=lambda: now))) == 1
    assert "http://127.0.0.1:8000/pay/" in mail.outbox[0].body
    draft = Reservation.objects.get(payment_link_until__gt=now)
    assert draft.is_held_at(now)
    assert draft.user.email in mail.outbox[0].to


def test_every_center_has_meetings_in_the_past_and_to_come(full):
    for center in Center.objects.all():
        rows = Reservation.objects.filter(room__center=center)
        assert rows.filter(start__lt=full - 9 * DAY).exists(), center
        assert rows.filter(start__gt=full + 9 * DAY).exists(), center
        today = full.astimezone(center.zone).date()
        days = [row.start.astimezone(center.zone).date() for row in rows]
        if center.opening_hours.filter(weekday=today.weekday()).exists():
            assert today in days, center
    first, last = (Reservation.objects.order_by(key).first().start for key in ("start", "-start"))
    assert first < full - 55 * DAY
    assert last > full + 55 * DAY


def test_every_report_has_figures(full):
    today = full.date()
    this_month = ReportSelection(LocalDays(today.replace(day=1), today), None)
    last_month = ReportSelection(LocalDays.from_month(dt.date(2027, 2, 1)), None)
    for selection in (this_month, last_month):
        assert revenue.REVENUE.read(revenue.measure_revenue(selection).total) > 1000
        assert (
            utilization.UTILIZATION.read(utilization.measure_utilization(selection).rooms.total)
            > 0.01
        )
        report = month_end.build_report(selection)
        assert report.figures


def test_room_of_the_guide_is_free_from_the_day_of_its_walk(full):
    aspen = MeetingRoom.objects.select_related("center").get(name="Aspen")
    for days in range(30, 121):
        day = full.astimezone(aspen.center.zone).date() + days * DAY
        start, end = (
            dt.datetime.combine(day, dt.time(hour), aspen.center.zone) for hour in (9, 17)
        )
        if day.weekday() < 6 and (day.month, day.day) not in {(7, 4), (12, 25), (1, 1)}:
            assert availability.evaluate(aspen, Span(start, end), now=full).is_available, day


def test_special_cases_are_planned_at_any_hour_and_on_any_day(full):
    monday = dt.datetime(2027, 3, 1, 0, 5, tzinfo=dt.UTC)
    step = 6 if LONG else 30  # the same four hours, but once each
    for start in [
        *map(dt.datetime.fromisoformat, PLANNED_STARTS),
        *(monday + hours * HOUR for hours in range(0, 7 * 24, step)),
    ]:
        events = working_days.Plan(start.astimezone(dt.UTC)).plan()

        assert max(event.at for event in events) <= start
        met = [event.act.args[0] for event in events if isinstance(event.act, partial)]
        now = {each for each in met if abs(each.span.start - start) <= 3 * HOUR}
        for name in ("Amara", "Bruno", "Chiara", "Devika"):
            assert any(each.customer.first_name == name for each in now), (start, name)
