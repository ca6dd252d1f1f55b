"""Every command says what it does, in one sentence if it can."""

import pytest
from django.core.management import get_commands, load_command_class

OUR_APPS = ("accounts", "centers", "payments", "reservations", "roombook")
COMMANDS = {name: app for name, app in get_commands().items() if app in OUR_APPS}
# They say when and where they run, too.
LONGER = {"run_jobs", "send_webhooks", "verify_integrity"}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_one_sentence(name):
    text = load_command_class(COMMANDS[name], name).help

    assert text.endswith(".")
    assert (". " in text) is (name in LONGER)
    assert 40 < len(text) < 300
