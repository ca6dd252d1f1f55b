"""Task 2: a meeting runs over. The desk extends it by half an hour and charges the difference."""

import datetime as dt

import pytest
from django.db.models import F
from django.utils import timezone
from playwright.sync_api import expect

from accounts.act import Act
from accounts.models import User
from centers.models import Center, OpeningHours
from reservations.booking.charging import PaymentMethod
from reservations.booking.checkout import check_out
from reservations.booking.drafts import create_draft
from reservations.demo.accounts import DEMO
from reservations.models import Reservation
from reservations.models.status import Status
from tests.browser.day import room
from tests.browser.person import Person
from tests.browser.ways import DESKTOP, in_ways

MAX_CLICKS = 4
HOUR = dt.timedelta(hours=1)


@pytest.fixture
def running(demo) -> Reservation:
    """A meeting that began an hour ago or more, in a center that is open day and night."""
    Reservation.objects.update(
        status=Status.CANCELLED, cancelled_at=F("created_at"), holds_slot=False, hold_until=None
    )
    place = room("Boardroom")
    # It is about noon there, because no meeting goes on after midnight.
    Center.objects.update(time_zone_id=f"Etc/GMT{timezone.now().hour - 12:+d}")
    place.center.opening_hours.all().delete()
    OpeningHours.objects.bulk_create(
        OpeningHours(center=place.center, weekday=day, opens=dt.time(), closes=dt.time())
        for day in range(7)
    )
    user = User.objects.get(email=DEMO)
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    booked_at = hour - 24 * HOUR
    draft = create_draft(
        Act(user, booked_at),
        user,
        room_id=place.pk,
        start=hour - HOUR,
        end=hour + 2 * HOUR,
    )
    method = PaymentMethod(use_saved_card=True)
    return check_out(Act(user, booked_at), draft.pk, payment_method=method)


def open_running_meeting(person: Person, running: Reservation) -> None:
    """Open its page from the list of the day on which it began."""
    page = person.page
    day = running.start.astimezone(running.room.center.zone).date()
    page.goto(f"{page.url}reservations/reservation/today/?date={day}")
    person.click(page.locator(f"#reservation-{running.pk}").get_by_role("link").first)
    person.click(page.get_by_role("link", name="Extend", exact=True))
    expect(page.locator("#preview tfoot")).to_contain_text("+$")


@in_ways(DESKTOP)
def test_running_meeting_is_extended_and_charged_to_the_saved_card(desk, running, way):
    page = desk("desk", way)
    person = Person(page, way)
    open_running_meeting(person, running)

    expect(page.get_by_label("If it costs more")).to_have_value("card")
    preview = page.locator("#preview")
    expect(preview).to_contain_text("Ask the customer")
    person.click(page.locator("input[name=consent]"), key="Space")
    expect(preview).not_to_contain_text("Ask the customer")
    expect(preview).to_contain_text("Visa ending")
    person.click(preview.get_by_role("button", name="Extend and take payment"))

    expect(page.locator("body")).to_contain_text("charged to the saved card")
    extended = Reservation.objects.get(pk=running.pk)
    assert extended.end == running.end + HOUR / 2
    payment = extended.payments.get(purpose="change")
    assert (payment.state, payment.amount) == (
        "captured",
        extended.total_cost - running.total_cost,
    )
    assert person.clicks <= MAX_CLICKS
