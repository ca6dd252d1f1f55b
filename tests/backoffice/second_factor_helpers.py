"""What the tests of two-step sign-in share: its pages, and the codes of an authenticator app."""

import datetime as dt
import re
from base64 import b32decode

from django.urls import reverse
from django_otp.oath import totp
from django_otp.plugins.otp_totp.models import TOTPDevice

from tests.factories_people import PASSWORD

LOGIN, INDEX = reverse("admin:login"), reverse("admin:index")
VERIFY = reverse("admin:accounts_second_factor")
SET_UP = reverse("admin:accounts_second_factor_set_up")
TURN_OFF = reverse("admin:accounts_second_factor_off")
RECOVERY_CODES = reverse("admin:accounts_recovery_codes")
START = dt.datetime(2027, 3, 1, 12, tzinfo=dt.UTC)


def get_code(user):
    device = TOTPDevice.objects.get(user=user)
    return f"{totp(device.bin_key, step=device.step):06}"


def get_new_code(client):
    """Return the code that the app shows for the key on the set-up page."""
    page = client.get(SET_UP).text
    return compute_code(read_key(page))


def read_key(page):
    return re.search(r'<code id="key">([A-Z2-7 ]+)</code>', page)[1]


def compute_code(key):
    return f"{totp(b32decode(key.replace(' ', ''))):06}"


def sign_in(client, user, **extra):
    return client.post(LOGIN, {"username": user.email, "password": PASSWORD}, **extra)


def turn_on(client, user, clock):
    """Turn the second factor on, and return the recovery codes."""
    sign_in(client, user)
    response = client.post(SET_UP, {"code": get_new_code(client)})
    assert "recovery-codes" in response.text
    # The next code.
    clock.shift(30)
    user.refresh_from_db()
    return read_recovery_codes(response.text)


def read_recovery_codes(page):
    return re.findall(r"<code>([A-Z2-7-]{19})</code>", page)
