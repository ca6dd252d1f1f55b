"""The migrations match the models, on either database."""

from importlib import import_module

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from accounts.models import KnownNetwork
from centers.models import Center
from tests.factories_centers import CenterFactory, LandmarkFactory, RateFactory
from tests.factories_people import StaffFactory, UserFactory
from tests.factories_reservations import PromoCodeFactory


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
def test_migration_of_networks_forgets_those_of_accounts_with_a_second_factor():
    now = timezone.now()
    ada, grace = UserFactory(), StaffFactory(second_factor_since=now)
    for user in (ada, grace):
        KnownNetwork.record(user.pk, "digest", now=now)

    name = "accounts.migrations.0016_networks_of_passwords_alone_are_forgotten"
    import_module(name).forget_networks(apps, None)

    assert KnownNetwork.objects.get().user == ada


@pytest.mark.django_db
def test_migrations_store_names_addresses_and_codes_in_one_spelling_unless_two_become_one():
    center = CenterFactory()
    rates = [RateFactory(center=center) for _ in range(3)]
    users, codes = [UserFactory() for _ in range(3)], [PromoCodeFactory() for _ in range(3)]
    before = {
        "centers_center SET name_folded = 'caf\u200be', search_text = 'caf\u200be\nx', name": {
            center: "Caf\u200be\u0301"
        },
        "centers_rate SET name": dict(zip(rates, ("Cafe\u0301", "B  b", "Caf\u00e9"), strict=True)),
        "accounts_user SET email": dict(
            zip(users, ("a@xn--bcher-kva.x", "b@xn--bcher-kva.x", "b@b\u00fccher.x"), strict=True)
        ),
        "reservations_promocode SET code": dict(
            zip(codes, ("\u0130ND", "STRA\u1e9eE", "STRASSE"), strict=True)
        ),
    }
    with connection.cursor() as cursor:
        for column, values in before.items():
            for row, value in values.items():
                cursor.execute(f"UPDATE {column} = %s WHERE id = {row.pk}", [value])

    for name, functions in {
        "centers.migrations.0004_names_are_stored_in_one_spelling": ["clean_names", "fold_again"],
        "accounts.migrations.0024_domains_of_accounts_have_one_spelling": [
            "canonicalize_addresses"
        ],
        "reservations.migrations.0025_codes_are_stored_in_one_spelling": ["normalize_codes"],
    }.items():
        for function in functions:
            getattr(import_module(name), function)(apps, None)

    center.refresh_from_db()
    assert (center.name, center.name_folded, center.search_text) == ("Caf\u00e9", "cafe", "cafe\nx")

    def read(rows, column):
        return [type(each).objects.values_list(column, flat=True).get(pk=each.pk) for each in rows]

    assert read(rates, "name") == ["Cafe\u0301", "B b", "Caf\u00e9"]
    assert read(users, "email") == ["a@b\u00fccher.x", "b@xn--bcher-kva.x", "b@b\u00fccher.x"]
    assert read(codes, "code") == ["IND", "STRA\u1e9eE", "STRASSE"]
