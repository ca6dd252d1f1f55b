"""A draft with a promo code and included hours."""

import pytest

from tests.factories_reservations import (
    NOW,
    AllowanceFactory,
    PromoCodeFactory,
    make_draft,
    make_room,
    update_promo_code,
)


@pytest.fixture
def plan(ada):
    """An allowance of one hour, which pays 25 of the 75 dollars."""
    return AllowanceFactory(user=ada, hours=1)


@pytest.fixture
def promo():
    return PromoCodeFactory(code="TEN", max_uses=1)


@pytest.fixture
def drafted(ada, plan, promo):
    """A draft of three hours, one of them included, with ten percent off: 45 dollars."""
    reservation = make_draft(ada, make_room())
    return update_promo_code(reservation.pk, "TEN", user=ada, now=NOW)
