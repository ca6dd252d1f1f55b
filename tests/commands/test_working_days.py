"""The demo data: whole, and what staff see after the first `make run` (B20).

Ids, names and statuses of the dozen reservations are those in the examples of README, the guide and
the OpenAPI description, which are run with the demo data.
"""

import datetime as dt
from collections import defaultdict
from functools import partial

import pytest
import time_machine
from django.contrib.auth.models import Permission
from django.core import mail
from django.core.management import CommandError, call_command
from django.test import override_settings

from accounts import outbox
from accounts.models import CenterRole, OutboxMessage, User
from centers import models as centers
from payments.models import Payment, PaymentPurpose, Refund
from reservations.booking import integrity, reminders
from reservations.demo import working_days
from reservations.demo.accounts import ROLES_CENTER, STAFF
from reservations.desk.dashboard.alerts import find_alerts
from reservations.desk.today import load_day
from reservations.local_days import LocalDays
from reservations.models import Reservation
from reservations.models.status import Status
from reservations.reports import month_end, revenue, utilization
from reservations.reports.selection import ReportSelection
from tests.conftest import FAST_HASHERS, restart_ids, use_tiny_pictures
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
    "2026-12-31T14:55+00:00",  # Tokyo closes in five minutes, for three days
    "2027-11-07T01:30-07:00",  # the second 1:30 of this day
    "2028-02-29T03:00-07:00",
    "2039-10-02T02:05+11:00",
    *STARTS,
]


@pytest.fixture(scope="module", params=[MORNING, *(STARTS if LONG else [])])
def loaded(request, django_db_setup, django_db_blocker, tmp_path_factory):
    """The demo data of a start, and what `seed_demo --if-empty` said while they were loaded.

    Each meeting takes time, so there are only those that each center needs. They are committed,
    because the gateway is never called inside a transaction; what tests change is rolled back.
    """
    now = dt.datetime.fromisoformat(request.param)
    media, create, said = tmp_path_factory.mktemp("media"), working_days.create, []

    def seed_again_and_create(**options):
        with pytest.raises(CommandError) as refused:
            call_command("seed_demo", if_empty=True)
        said.append(str(refused.value))
        create(**options)

    with (
        django_db_blocker.unblock(),
        pytest.MonkeyPatch.context() as patch,
        override_settings(DEBUG=True, MEDIA_ROOT=media, PASSWORD_HASHERS=FAST_HASHERS),
    ):
        use_tiny_pictures(patch)
        patch.setattr(working_days, "create", seed_again_and_create)
        for name in ("BUSY_SHARES", "OTHER_SHARES"):
            patch.setattr(working_days, name, (0, 0, 0))
        call_command("flush", interactive=False, verbosity=0)
        restart_ids()
        with time_machine.travel(now, tick=False):
            call_command("seed_demo", verbosity=0)
        patch.undo()
        yield now, *said
        call_command("flush", interactive=False, verbosity=0)


@pytest.fixture
def now(loaded, db):
    with time_machine.travel(loaded[0], tick=False):
        yield loaded[0]


def test_demo_that_is_not_loaded_to_its_end_is_not_whole(loaded):
    _, said = loaded
    assert said.startswith("The demo is not whole")


def test_data_pass_the_integrity_checks_and_rows_the_models_validation(now):
    assert list(integrity.find_problems(now=now)) == []
    # The others are imported, which validates them.
    for model in (centers.ResourceType, centers.Neighborhood, centers.Landmark):
        for row in model.objects.all():
            row.full_clean()


def test_staff_have_all_permissions_and_each_role_has_an_account_at_one_center(now):
    staff = User.objects.get(email=STAFF)
    apps = ("accounts", "backoffice", "centers", "payments", "reservations")

    assert not staff.is_superuser
    ours = Permission.objects.filter(content_type__app_label__in=apps)
    assert set(staff.user_permissions.all()) == set(ours)
    roles = CenterRole.objects.values_list("group__name", "user__email", "center__name")
    assert set(roles) == {
        (role, f"{role.lower()}@roombook.example", ROLES_CENTER)
        for role in ("Manager", "Desk", "Viewer")
    }


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
    assert OutboxMessage.objects.count() > 20
    assert len(list(outbox.send_due_messages(clock=lambda: now))) == 1
    assert "http://127.0.0.1:8000/pay/" in mail.outbox[0].body
    draft = Reservation.objects.get(payment_link_until__gt=now)
    assert draft.is_held_at(now)
    assert draft.user.email in mail.outbox[0].to


def test_every_report_has_figures(now):
    today = now.date()
    this_month = ReportSelection(LocalDays(today.replace(day=1), today), None)
    last_month = ReportSelection(LocalDays.from_month(today.replace(day=1) - DAY), None)
    for selection in (this_month, last_month):
        assert revenue.REVENUE.read(revenue.measure_revenue(selection).total) > 100
        rooms = utilization.measure_utilization(selection).rooms
        assert utilization.UTILIZATION.read(rooms.total) > 0
        assert month_end.build_report(selection).figures


def plan(start):
    """The meetings that are planned, without those that the tests of this module have made."""
    events = working_days.Plan(start.astimezone(dt.UTC)).plan()
    assert max(event.at for event in events) <= start
    return [event.act.args[0] for event in events if isinstance(event.act, partial)]


def test_every_center_has_meetings_around_today_and_the_room_of_the_guide_is_free(now):
    if now != dt.datetime.fromisoformat(MORNING):
        pytest.skip("whether a center has meetings today is only certain for one start")
    met = defaultdict(list)
    for each in plan(now):
        met[each.room.center].append(each.span.start)
        assert each.room.name != "Aspen" or each.span.start < now + 30 * DAY

    assert len(met) == centers.Center.objects.count() == 21
    open_today = 0
    for center, starts in met.items():
        assert min(starts) < now - 9 * DAY < now + 9 * DAY < max(starts), center
        today = now.astimezone(center.zone).date()
        open_today += today in [each.astimezone(center.zone).date() for each in starts]
    assert open_today > 15
    starts = sorted(each for starts in met.values() for each in starts)
    assert starts[0] < now - 55 * DAY < now + 55 * DAY < starts[-1]


def test_special_cases_are_planned_at_any_hour_and_on_any_day(now):
    monday = dt.datetime(2027, 3, 1, 0, 5, tzinfo=dt.UTC)
    for at in [
        *map(dt.datetime.fromisoformat, PLANNED_STARTS if LONG else PLANNED_STARTS[:3]),
        *(monday + hours * HOUR for hours in range(0, 7 * 24 if LONG else 0, 6)),
    ]:
        soon = [each for each in plan(at) if abs(each.span.start - at) <= 3 * HOUR]
        for name in ("Amara", "Bruno", "Chiara", "Devika"):
            assert any(each.customer.first_name == name for each in soon), (at, name)
