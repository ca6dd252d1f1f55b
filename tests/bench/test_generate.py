"""The generated data are consistent, and rows can be added to them."""

import datetime as dt

import pytest

from centers.models import Center
from centers.search.index import refresh_search_columns
from reservations.booking import integrity
from reservations.models import Reservation
from reservations.models.status import Status
from tests.bench.generate import generate
from tests.factories_centers import CenterFactory

NOW = dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC)


@pytest.mark.django_db
def test_generated_data_have_the_requested_size_and_pass_the_integrity_checks():
    generate(centers=40, reservations=1000, now=NOW)

    assert Reservation.objects.count() == 1000
    assert {*Reservation.objects.values_list("status", flat=True)} == {
        *(Status.COMPLETED, Status.CONFIRMED, Status.PENDING, Status.EXPIRED),
    }
    assert list(integrity.find_problems(now=NOW)) == []
    columns = ["pk", *Center.SEARCH_COLUMNS]
    generated = list(Center.objects.order_by("pk").values_list(*columns))
    refresh_search_columns(Center.objects.values_list("pk", flat=True))
    assert list(Center.objects.order_by("pk").values_list(*columns)) == generated
    assert CenterFactory().pk == generated[-1][0] + 1
