"""Every command says in one sentence what it does."""

import pytest
from django.core.management import load_command_class

COMMANDS = (
    *("seed_demo", "create_reservation", "availability", "explain_quote"),
    *("expire_reservations", "reconcile_payments"),
)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_one_sentence(name):
    text = load_command_class("reservations", name).help

    assert text.endswith(".")
    assert ". " not in text
    assert 60 < len(text) < 300
