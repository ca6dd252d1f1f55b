"""The generated data are consistent, and rows can be added to them."""

import datetime as dt
from collections import Counter

import pytest

from centers import geo
from centers.models import Center
from payments.models import Payment, SandboxPayment
from reservations.booking import integrity
from reservations.models import Reservation
from reservations.models.status import Status
from tests.bench.generate import generate
from tests.factories_centers import CenterFactory

NOW = dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC)


@pytest.mark.postgres
@pytest.mark.django_db
def test_generated_data_have_the_requested_size_and_pass_the_integrity_checks(settings):
    # The history and the e-mails are left out, as if they were deleted already.
    settings.AUDIT_LOG_DAYS = settings.EMAIL_DAYS = 1
    generate(centers=16, reservations=320, originals=4, now=NOW)

    assert Reservation.objects.count() == 320
    counts = Counter(Reservation.objects.values_list("status", flat=True))
    assert {*counts} == {Status.COMPLETED, Status.CONFIRMED, Status.PENDING, Status.EXPIRED}
    # Of each original there are as many copies.
    assert {count % 4 for count in counts.values()} == {0}
    assert list(integrity.find_problems(now=NOW)) == []
    keys = set(Payment.objects.values_list("key", flat=True))
    assert keys == set(SandboxPayment.objects.values_list("key", flat=True))
    for center in Center.objects.all():
        vector = geo.Coordinates(center.latitude, center.longitude).vector
        assert (center.x, center.y, center.z) == pytest.approx(tuple(vector), abs=1e-7)
    # The sequences go on behind the copies.
    last = Center.objects.latest("pk").pk
    assert CenterFactory().pk == last + 1
