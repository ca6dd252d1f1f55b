"""Every command says in one sentence what it does."""

import pytest
from django.core.management import load_command_class

COMMANDS = {
    "centers": ("import_centers", "export_centers"),
    "reservations": (
        *("seed_demo", "create_reservation", "availability", "explain_quote"),
        *("expire_reservations", "reconcile_payments"),
    ),
}


@pytest.mark.parametrize(
    ("app", "name"), [(app, name) for app in COMMANDS for name in COMMANDS[app]]
)
def test_help_is_one_sentence(app, name):
    text = load_command_class(app, name).help

    assert text.endswith(".")
    assert ". " not in text
    assert 60 < len(text) < 300
