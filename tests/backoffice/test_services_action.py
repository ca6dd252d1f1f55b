"""Staff change the services and the guests of a booking, and see a change that is not paid yet."""

import pytest

from payments.models import Payment, Refund
from reservations.booking.charging import PaymentMethod
from reservations.desk.booking_form import ServiceField
from reservations.models import Attendee, BookingChange, ChosenService
from tests.backoffice.reading import messages_of, words
from tests.backoffice.reservation_pages import action_url, confirm, reservation_url
from tests.factories_centers import ServiceFactory
from tests.factories_people import SavedCardFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    make_booking,
    make_room,
)
from tests.reservations.rescheduling_helpers import change, make_room_at_rate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]


@pytest.fixture
def booking():
    """Three hours at 25, for the customer and a guest."""
    booking = make_booking(room=make_room_at_rate(make_room(), 25), number_of_attendees=2)
    Attendee.objects.create(
        reservation=booking, name="Ada King", email_address="ada@example.com", company_name="Engine"
    )
    return booking


@pytest.fixture
def coffee(booking):
    return ServiceFactory(center=booking.room.center, name="Coffee", needs_quantity=True)  # 15 each


def read_form(page, **changed):
    """What a browser submits from the form of the page, with some fields changed."""
    data = {}
    for field in page.context["form"]:
        if isinstance(field.field, ServiceField):
            parts = zip(field.field.names, field.value(), strict=True)
            data |= {f"{field.html_name}_{name}": value for name, value in parts}
        else:
            data[field.html_name] = field.value()
    data = {name: value for name, value in data.items() if str(value) not in {"None", "False", ""}}
    return {**data, **changed}


def test_staff_add_services_and_guests_and_take_the_difference(office, booking, coffee):
    url = action_url(booking, "services")
    page = office.get(url)
    assert page.context["preview"] is None  # nothing is entered yet
    chosen = {f"service-{coffee.pk}_chosen": "on", f"service-{coffee.pk}_quantity": "2"}
    incomplete = office.post(url, read_form(page, **{f"service-{coffee.pk}_chosen": "on"}))
    assert "This service needs a quantity of 1 or more." in words(incomplete)
    assert 'name="confirmed"' not in incomplete.text
    guests = "Ada King <ada@example.com>\r\nGrace, grace@example.com"
    typed = read_form(page, **chosen, attendees=guests, way="cash")

    shown = words(office.post(url, typed))
    done = confirm(office, booking, "services", **typed, expected_amount="105.00")

    assert "Charge $30.00, Cash" in shown
    assert "Number of attendees 3 instead of 2" in shown
    assert messages_of(done)[0] == ("success", f"{booking}: Changed. $30.00 paid in cash.")
    booking.refresh_from_db()
    assert (booking.total_cost, booking.number_of_attendees) == (105, 3)
    assert (booking.start, booking.end) == (START, START + 3 * HOUR)
    assert ChosenService.objects.get().quantity == 2
    companies = booking.attendees.filter(is_creator=False).values_list("name", "company_name")
    assert set(companies) == {("Ada King", "Engine"), ("Grace", "")}
    assert Payment.objects.get(purpose="change").amount == 30

    # What is not changed stays, and fewer services are refunded.
    page = office.get(url)
    assert "is like that already" in words(office.post(url, read_form(page)))
    fewer = read_form(page, **{f"service-{coffee.pk}_quantity": "1"})
    confirm(office, booking, "services", **fewer, expected_amount="90.00")
    booking.refresh_from_db()
    assert (booking.total_cost, booking.attendees.count()) == (90, 3)
    # Guests alone cost nothing.
    typed = read_form(office.get(url), attendees="")
    confirm(office, booking, "services", **typed, expected_amount="90.00")
    assert [each.is_creator for each in booking.attendees.all()] == [True]
    assert Payment.objects.count() == 2


def add_coffee(office, reservation, coffee, total, **more):
    """Add two coffees by the form, at another desk."""
    page = office.get(action_url(reservation, "services"))
    chosen = {f"service-{coffee.pk}_chosen": "on", f"service-{coffee.pk}_quantity": "2"}
    confirm(
        office, reservation, "services", **read_form(page, **chosen, **more), expected_amount=total
    )


def test_form_opened_before_another_change_changes_nothing(office, booking, coffee):
    url = action_url(booking, "services")
    stale = [
        read_form(office.get(url), number_of_attendees="4"),
        read_form(office.get(url), attendees="Ada King\r\nBabbage"),
    ]
    add_coffee(office, booking, coffee, "105.00", way="cash")

    for typed in stale:
        shown = office.post(url, typed)
        done = confirm(office, booking, "services", **typed, expected_amount="75.00")
        assert "It was changed meanwhile" in words(shown)
        assert 'name="confirmed"' not in shown.text
        assert "Nothing was changed now." in messages_of(done)[-1][1]

    booking.refresh_from_db()
    assert (booking.total_cost, booking.number_of_attendees) == (105, 2)
    assert booking.attendees.get(is_creator=False).name == "Ada King"
    assert not Refund.objects.exists()


def test_deactivated_service_stays_as_it_is_booked_until_staff_remove_it(office, booking, coffee):
    tea = ServiceFactory(center=booking.room.center, name="Tea", needs_quantity=True)  # 15 each
    add_coffee(office, booking, coffee, "105.00", way="cash")
    coffee.is_active = False
    coffee.save()
    url = action_url(booking, "services")

    more_tea = {f"service-{tea.pk}_chosen": "on", f"service-{tea.pk}_quantity": "1", "way": "cash"}
    more_tea |= {f"service-{coffee.pk}_quantity": "9"}  # The field is disabled.
    typed = read_form(office.get(url), **more_tea)
    confirm(office, booking, "services", **typed, expected_amount="120.00")

    booking.refresh_from_db()
    assert booking.total_cost == 120
    chosen = booking.chosen_services.order_by("service").values_list("service", "quantity")
    assert list(chosen) == [(coffee.pk, 2), (tea.pk, 1)]
    fewer = read_form(office.get(url))
    del fewer[f"service-{coffee.pk}_chosen"]
    confirm(office, booking, "services", **fewer, expected_amount="90.00")
    assert booking.chosen_services.get().service == tea


def test_form_has_no_guests_for_who_may_not_see_them(client, staff, booking, groups):
    groups["Desk"].permissions.remove(*groups["Desk"].permissions.filter(codename="view_attendee"))
    client.force_login(staff("Desk", booking.room.center))

    page = client.get(action_url(booking, "services"))
    confirm(
        client,
        booking,
        "services",
        **read_form(page, number_of_attendees="4"),
        expected_amount="75.00",
    )

    assert "ada@example.com" not in words(page)
    assert "attendees" not in page.context["form"].fields
    booking.refresh_from_db()
    assert (booking.number_of_attendees, booking.attendees.count()) == (4, 2)


def test_change_that_waits_for_the_bank_is_seen_on_the_page_and_in_the_panel(
    office, booking, coffee
):
    SavedCardFactory(user=booking.user, outcome="requires_action", saved_by_setup=True)
    wanted = {
        "hours": 5,
        "services": [{"service_id": coffee.pk, "quantity": 1}],
        "attendees": [{"name": "Grace"}],
        "number_of_attendees": 4,
        "total": 140,
    }
    assert not change(booking, **wanted, method=PaymentMethod(use_saved_card=True)).is_applied

    page = office.get(reservation_url(booking))
    panel = office.get(reservation_url(booking), headers={"X-Requested-With": "fetch"})

    for shown in map(words, (page, panel)):
        assert "Services Coffee Number of attendees 4" in shown
        assert "by the customer Payment $65.00. Waiting for the customer's bank until" in shown
    BookingChange.objects.update(state="abandoned", resolved_at=NOW, personal_values=None)
    assert "not paid yet" not in words(office.get(reservation_url(booking)))
