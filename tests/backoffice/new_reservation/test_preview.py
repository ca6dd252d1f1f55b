"""The preview of a new reservation by staff."""

import pytest

from reservations.models import Reservation
from tests.backoffice.new_reservation.helpers import ADD, PREVIEW, typed, words
from tests.factories_centers import ServiceFactory
from tests.factories_reservations import AllowanceFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]


def test_preview_get_is_not_found(office, room):
    assert office.get(PREVIEW, typed(room)).status_code == 404


# Live preview
def test_preview_without_customer_shows_list_price(office, room):
    text = words(office.post(PREVIEW, typed(room)))
    assert "✓ Available" in text
    assert "List price" in text
    assert "Boardroom, 3 hours" in text
    assert "Total $75.00" in text
    assert "Choose a customer to subtract their included hours." in text


def test_preview_with_customer_subtracts_included_hours(office, room, user):
    AllowanceFactory(user=user, hours=2)
    text = words(office.post(PREVIEW, typed(room, user)))
    assert "Price for Ada Lovelace" in text
    assert "Total $25.00" in text
    assert not Reservation.objects.exists()
    office.post(ADD, typed(room, user))
    assert Reservation.objects.get().total_cost == 25


def test_preview_includes_services(office, room):
    coffee = ServiceFactory(center=room.center, name="Coffee", needs_quantity=True)
    fields = {f"service-{coffee.pk}-chosen": "on", f"service-{coffee.pk}-quantity": "2"}
    text = words(office.post(PREVIEW, typed(room, **fields)))
    assert "Coffee" in text
    assert "Total $105.00" in text


def test_preview_room_without_rate_shows_message(office, room):
    type(room).objects.filter(pk=room.pk).update(rate=None)
    assert "no price yet" in words(office.post(PREVIEW, typed(room)))


def test_preview_without_room_asks_for_it(office, room):
    assert "Choose a room and its times." in words(office.post(PREVIEW, typed(room, room="")))


def test_preview_end_before_start_shows_error(office, room):
    text = words(office.post(PREVIEW, typed(room, end="2027-03-03 08:00")))
    assert "The end must be after the start." in text


def test_check_button_shows_preview_without_script(office, room, user):
    answer = office.post(ADD, typed(room, user, check="1"))
    assert "✓ Available" in words(answer)
    assert not Reservation.objects.exists()


def test_preview_above_capacity_shows_error(office, room, user):
    text = words(office.post(PREVIEW, typed(room, user, number_of_attendees="9")))
    assert "✕ Not possible" in text
    assert "✓ Available" not in text
    assert "The room holds 8 people." in text


def test_preview_service_without_quantity_is_named(office, room):
    coffee = ServiceFactory(center=room.center, name="Coffee", needs_quantity=True)
    ServiceFactory(center=room.center, name="Tea", needs_quantity=True)
    text = words(office.post(PREVIEW, typed(room, **{f"service-{coffee.pk}-chosen": "on"})))
    assert "✕ Not possible" in text
    assert "Coffee: This service needs a quantity of 1 or more." in text


def test_preview_invalid_numbers_are_named(office, room):
    coffee = ServiceFactory(center=room.center, name="Coffee", needs_quantity=True)
    fields = {f"service-{coffee.pk}-quantity": "some", "number_of_attendees": "many"}
    text = words(office.post(PREVIEW, typed(room, **fields)))
    assert "✓ Available" not in text
    assert "Number of attendees: Enter a whole number." in text
    assert "Coffee: Enter a whole number." in text
