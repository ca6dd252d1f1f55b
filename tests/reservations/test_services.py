"""Validation of the services that a customer selects."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from centers.models import Service
from centers.span import Span
from reservations import records
from reservations.models import Reservation
from reservations.pricing import services
from reservations.pricing.quote import ServiceSelection
from roombook.errors import InvalidRequest
from tests.factories_centers import CenterFactory, ServiceFactory
from tests.factories_reservations import make_booking

pytestmark = pytest.mark.django_db


@pytest.fixture
def center():
    return CenterFactory()


@pytest.fixture
def coffee(center):
    return ServiceFactory(center=center, name="Coffee", needs_quantity=True, position=2)


@pytest.fixture
def projector(center):
    return ServiceFactory(center=center, name="Projector", needs_duration=True, position=1)


def select(center, *options):
    noon = datetime(2027, 3, 3, 12, tzinfo=UTC)
    return services.select_services(center, options, Span(noon, noon + timedelta(hours=2)))


def get_errors(center, *options):
    with pytest.raises(InvalidRequest) as error:
        select(center, *options)
    return error.value.fields


def test_selected_services_are_in_the_order_of_the_center(center, coffee, projector):
    first, second = select(
        center,
        {"service_id": coffee.pk, "selected": True, "quantity": 3},
        {"service_id": projector.pk, "duration_hours": Decimal("1.5")},  # absent: selected
    )

    assert (first.service, first.duration_hours, first.quantity) == (
        projector,
        Decimal("1.5"),
        None,
    )
    assert (second.service, second.duration_hours, second.quantity) == (coffee, None, 3)


def test_deactivated_service_is_only_kept_as_it_is_booked(center, coffee):
    coffee.is_active = False
    coffee.save()
    noon = datetime(2027, 3, 3, 12, tzinfo=UTC)
    span, booked = Span(noon, noon + timedelta(hours=2)), [ServiceSelection(coffee, None, 3)]

    same, more = ({"service_id": coffee.pk, "quantity": quantity} for quantity in (3, 4))

    assert services.select_services(center, [same], span, booked=booked) == booked
    with pytest.raises(InvalidRequest) as error:
        services.select_services(center, [more], span, booked=booked)
    assert "Keep it as it is" in error.value.fields["service_options.0.service_id"]
    assert "does not offer" in get_errors(center, same)["service_options.0.service_id"]


QUANTITY = "This service needs a quantity of 1 or more."
NOT_OFFERED = "This center does not offer this service."
NOTHING = {"quantity": 0, "duration_hours": Decimal(0)}
ONE_COFFEE = {"service": "Coffee", "quantity": 1}


# The options, and the message of each field that is refused.
@pytest.mark.parametrize(
    ("options", "errors"),
    [
        ([{"service": "Coffee"}], {"0.quantity": QUANTITY}),
        (
            [{"service": "Coffee", **NOTHING}, {"service": "Projector", **NOTHING}],
            {"0.quantity": QUANTITY, "1.duration_hours": "Must be greater than 0."},
        ),
        (
            [{"selected": False}, {"service": "Projector", "duration_hours": Decimal("2.01")}],
            {"1.duration_hours": "Must not be longer than the booking."},
        ),
        (
            # What the client says of a service is ignored.
            [{"service": "Coffee", "service_name": "Tea", "needs_quantity": False}],
            {"0.quantity": QUANTITY},
        ),
        (
            [{"service": "Elsewhere"}, {"service": "Off"}, {"service_id": 2**31 - 1}],
            {f"{index}.service_id": NOT_OFFERED for index in range(3)},
        ),
        ([ONE_COFFEE, ONE_COFFEE], {"1.service_id": "Each service can be chosen once."}),
        (
            [{"quantity": 1}, {"selected": False}, {"service": "Coffee"}, {}],
            {"0.service_id": "Required.", "2.quantity": QUANTITY, "3.service_id": "Required."},
        ),
    ],
)
def test_each_invalid_option_is_reported(center, coffee, projector, options, errors):
    ServiceFactory(name="Elsewhere")
    ServiceFactory(center=center, name="Off", is_active=False)
    ids = {service.name: service.pk for service in Service.objects.all()}
    wanted = [
        {
            ("service_id" if name == "service" else name): ids.get(value, value)
            for name, value in option.items()
        }
        for option in options
    ]

    expected = {f"service_options.{name}": message for name, message in errors.items()}
    assert get_errors(center, *wanted) == expected


def test_longest_duration_and_an_unselected_repetition_are_accepted(center, coffee, projector):
    assert select(center, {"service_id": projector.pk, "duration_hours": Decimal("2.00")})
    assert select(center, {"service_id": projector.pk})[0].duration_hours is None
    wanted = {"service_id": coffee.pk, "quantity": 1}
    assert len(select(center, wanted, {**wanted, "selected": False})) == 1


def test_fields_that_a_service_does_not_need_are_ignored(center, coffee, projector):
    first, second = select(
        center,
        {"service_id": coffee.pk, "quantity": 1, "duration_hours": Decimal(9)},
        {"service_id": projector.pk, "quantity": 5},
    )
    assert (first.service, first.quantity, first.duration_hours) == (projector, None, None)
    assert (second.service, second.quantity, second.duration_hours) == (coffee, 1, None)


def test_selected_service_stays_listed_when_the_center_no_longer_offers_it():
    booking = make_booking()
    removed = ServiceFactory(center=booking.room.center, name="Removed", is_active=False)
    booking.chosen_services.create(service=removed)
    reservations = Reservation.objects.for_user(booking.user)

    alone = records.get_record(booking.pk, user=booking.user)
    [listed] = records.list_records(reservations, user=booking.user)

    for record in (alone, listed):
        assert [each.service_name for each in record.services if each.selected] == ["Removed"]
