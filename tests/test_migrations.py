"""The migrations match the models, on either database."""

from datetime import time
from importlib import import_module

import pytest
from django.apps import apps
from django.core.management import call_command
from django.utils import timezone

from accounts.models import KnownNetwork
from centers.models import Center
from tests.factories_centers import CenterFactory, LandmarkFactory, OpeningHoursFactory
from tests.factories_people import StaffFactory, UserFactory


@pytest.mark.django_db
def test_migrations_are_complete(capsys):
    try:
        call_command("makemigrations", check=True, dry_run=True)
    except SystemExit:
        pytest.fail(f"run manage.py makemigrations: {capsys.readouterr().out}")


@pytest.mark.django_db
def test_migration_of_search_texts_removes_parts_of_the_kingdom_that_no_center_names():
    parts = "united kingdom\nuk\nengland\nscotland\nwales"
    rows = {
        "leith": CenterFactory(country="GB", state="Scotland", city="Leith"),
        "london": CenterFactory(country="GB", state="", city="London"),
        "wales": CenterFactory(country="US", state="AK", city="Wales"),
    }
    LandmarkFactory(center=rows["london"], name="Bank of Éngland")
    LandmarkFactory(center=rows["london"], name="WALES")
    for name, center in rows.items():
        Center.objects.filter(pk=center.pk).update(search_text=f"{name}\n{parts}")

    name = "centers.migrations.0002_search_texts_without_parts_of_the_united_kingdom"
    import_module(name).remove_parts(apps, None)

    texts = {name: Center.objects.get(pk=center.pk).search_text for name, center in rows.items()}
    assert texts == {
        "leith": "leith\nunited kingdom\nuk\nscotland",
        "london": "london\nunited kingdom\nuk\nwales",
        "wales": f"wales\n{parts}",
    }


@pytest.mark.django_db
def test_migration_back_splits_opening_hours_at_midnight():
    center = CenterFactory()
    for weekday, opens, closes in ((4, 8, 0), (6, 22, 2)):
        OpeningHoursFactory(center=center, weekday=weekday, opens=time(opens), closes=time(closes))

    name = "centers.migrations.0004_opening_hours_may_end_on_the_next_day"
    import_module(name).split_at_midnight(apps, None)

    rows = center.opening_hours.values_list("weekday", "opens__hour", "closes__hour")
    assert list(rows) == [(0, 0, 2), (4, 8, 0), (6, 22, 0)]


@pytest.mark.django_db
def test_migration_of_networks_forgets_those_of_accounts_with_a_second_factor():
    now = timezone.now()
    ada, grace = UserFactory(), StaffFactory(second_factor_since=now)
    for user in (ada, grace):
        KnownNetwork.record(user.pk, "digest", now=now)

    name = "accounts.migrations.0016_networks_of_passwords_alone_are_forgotten"
    import_module(name).forget_networks(apps, None)

    assert KnownNetwork.objects.get().user == ada
