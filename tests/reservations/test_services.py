"""Validation of the services that a customer selects."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from centers.span import Span
from reservations.pricing import services
from reservations.pricing.quote import ServiceSelection
from roombook.errors import InvalidRequest
from tests.factories_centers import CenterFactory, ServiceFactory

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


def test_no_options_select_no_services(center):
    assert select(center) == []


def test_unselected_options_are_not_validated(center):
    assert select(center, {"service_id": 999, "selected": False}, {"selected": False}) == []


def test_duration_is_optional_and_quantity_is_required(center, coffee, projector):
    (extra,) = select(center, {"service_id": projector.pk})
    assert extra.duration_hours is None
    assert get_errors(center, {"service_id": coffee.pk}) == {
        "service_options.0.quantity": "This service needs a quantity of 1 or more."
    }


def test_quantity_and_duration_of_zero_are_refused(center, coffee, projector):
    nothing = {"quantity": 0, "duration_hours": Decimal(0)}
    wanted = [{"service_id": coffee.pk, **nothing}, {"service_id": projector.pk, **nothing}]
    assert get_errors(center, *wanted) == {
        "service_options.0.quantity": "This service needs a quantity of 1 or more.",
        "service_options.1.duration_hours": "Must be greater than 0.",
    }


def test_duration_longer_than_the_booking_is_refused(center, projector):
    assert select(center, {"service_id": projector.pk, "duration_hours": Decimal("2.00")})
    too_long = {"service_id": projector.pk, "duration_hours": Decimal("2.01")}
    assert get_errors(center, {"selected": False}, too_long) == {
        "service_options.1.duration_hours": "Must not be longer than the booking."
    }


def test_fields_that_a_service_does_not_need_are_ignored(center, coffee, projector):
    first, second = select(
        center,
        {"service_id": coffee.pk, "quantity": 1, "duration_hours": Decimal(9)},
        {"service_id": projector.pk, "quantity": 5},
    )
    assert (first.service, first.quantity, first.duration_hours) == (projector, None, None)
    assert (second.service, second.quantity, second.duration_hours) == (coffee, 1, None)


def test_submitted_name_and_needs_are_ignored(center, coffee):
    submitted = {"service_name": "Champagne", "needs_quantity": False, "needs_duration": True}
    assert get_errors(center, {"service_id": coffee.pk, **submitted}).keys() == {
        "service_options.0.quantity"
    }


def test_service_not_offered_by_the_center_is_refused(center):
    elsewhere = ServiceFactory()
    off = ServiceFactory(center=center, is_active=False)
    assert get_errors(
        center, {"service_id": elsewhere.pk}, {"service_id": off.pk}, {"service_id": 2**31 - 1}
    ) == {
        f"service_options.{index}.service_id": "This center does not offer this service."
        for index in range(3)
    }


def test_service_selected_twice_is_refused(center, coffee):
    wanted = {"service_id": coffee.pk, "quantity": 1}
    assert get_errors(center, wanted, wanted) == {
        "service_options.1.service_id": "Each service can be chosen once."
    }
    assert len(select(center, wanted, {**wanted, "selected": False})) == 1


def test_all_invalid_options_are_reported(center, coffee):
    assert get_errors(center, {"quantity": 1}, {"selected": False}, {"service_id": coffee.pk}) == {
        "service_options.0.service_id": "Required.",
        "service_options.2.quantity": "This service needs a quantity of 1 or more.",
    }


def test_each_option_without_a_service_is_reported(center):
    assert get_errors(center, {}, {}) == {
        f"service_options.{index}.service_id": "Required." for index in range(2)
    }
