"""The sender of the e-mails."""

import pytest


@pytest.fixture(autouse=True)
def _sender(settings):
    settings.DEFAULT_FROM_EMAIL = "Rooms & Desks <rooms@example.com>"
    settings.SUPPORT_EMAIL = "help@example.com"
