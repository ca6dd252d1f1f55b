"""The preview of a new reservation by staff."""

import pytest

from reservations.models import Reservation
from tests.backoffice.new_reservation.helpers import ADD, PREVIEW, typed
from tests.backoffice.reading import words
from tests.factories_centers import ServiceFactory
from tests.factories_reservations import AllowanceFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]


COFFEE_CHOSEN = {"service-chosen": "on"}


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        (
            {},
            (
                *("✓ Available", "List price", "Boardroom, 3 hours", "Total $75.00"),
                "Choose a customer to subtract their included hours.",
            ),
        ),
        ({**COFFEE_CHOSEN, "service-quantity": "2"}, ("✓ Available", "Coffee", "Total $105.00")),
        ({"room": ""}, ("Choose a room and its times.",)),
        ({"end": "2027-03-03 08:00"}, ("The end must be after the start.",)),
        ({"number_of_attendees": "9"}, ("✕ Not possible", "The room holds 8 people.")),
        (
            COFFEE_CHOSEN,
            ("✕ Not possible", "Coffee: This service needs a quantity of 1 or more."),
        ),
        (
            {"service-quantity": "some", "number_of_attendees": "many"},
            ("Number of attendees: Enter a whole number.", "Coffee: Enter a whole number."),
        ),
    ],
)
def test_preview_shows_availability_price_and_what_is_missing(office, room, changed, shown):
    coffee = ServiceFactory(center=room.center, name="Coffee", needs_quantity=True)
    ServiceFactory(center=room.center, name="Tea", needs_quantity=True)
    fields = {
        name.replace("service-", f"service-{coffee.pk}_"): value for name, value in changed.items()
    }

    # The button does without a script what the script does.
    for page in (PREVIEW, ADD):
        text = words(office.post(page, typed(room, **fields, check="1")))
        assert [each for each in shown if each not in text] == [], page
        assert ("✓ Available" in text) is ("✓ Available" in shown)
    assert not Reservation.objects.exists()


def test_preview_with_customer_subtracts_included_hours(office, room, user):
    AllowanceFactory(user=user, hours=2)
    text = words(office.post(PREVIEW, typed(room, user)))
    assert "Price for Ada Lovelace" in text
    assert "Total $25.00" in text
    office.post(ADD, typed(room, user))
    assert Reservation.objects.get().total_cost == 25


def test_preview_of_room_without_rate_says_so_and_needs_post(office, room):
    type(room).objects.filter(pk=room.pk).update(rate=None)
    assert "no price yet" in words(office.post(PREVIEW, typed(room)))
    assert office.get(PREVIEW, typed(room)).status_code == 404
