"""The migrations match the models, on either database."""

import pytest
from django.core.management import call_command


@pytest.mark.django_db
def test_migrations_are_complete(capsys):
    try:
        call_command("makemigrations", check=True, dry_run=True)
    except SystemExit:
        pytest.fail(f"run manage.py makemigrations: {capsys.readouterr().out}")
