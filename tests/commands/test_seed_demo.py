"""`seed_demo` never gets among real data (B20)."""

import pytest
from django.core.management import CommandError

from accounts.models import User
from centers.models import Center, MeetingRoom
from tests.factories_centers import CenterFactory
from tests.factories_people import UserFactory


@pytest.mark.django_db
def test_seed_demo_with_debug_off_or_another_gateway_is_refused(run, settings, monkeypatch):
    settings.DEBUG = False
    with pytest.raises(CommandError, match=r"DEBUG is off, .* add --force"):
        run("seed_demo")
    with pytest.raises(CommandError, match="DEBUG is off"):
        run("seed_demo", "--if-empty")

    class Live:
        name = "stripe"

    settings.DEBUG = True
    monkeypatch.setattr("payments.gateways.get_current_gateway", Live)
    with pytest.raises(CommandError, match="PAYMENT_GATEWAY=sandbox"):
        run("seed_demo")
    assert not User.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("factory", [UserFactory, CenterFactory])
def test_seed_demo_with_other_data_refuses_even_if_forced(run, factory):
    factory()

    with pytest.raises(CommandError, match="The database is not empty"):
        run("seed_demo", force=True)
    assert run("seed_demo", if_empty=True) == "No demo data made: the database is not empty.\n"
    assert User.objects.count() + Center.objects.count() == 1
    assert not MeetingRoom.objects.exists()
