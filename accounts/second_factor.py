"""The second factor of staff: codes of an authenticator app (TOTP, RFC 6238), by django-otp (B18).

The back office asks for a code after the password. The API does not: there, staff see and do no
more than a customer.
"""

from base64 import b32encode
from datetime import datetime

import segno
from django_otp import match_token
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts import emails
from accounts.limits import SignInAttempts
from accounts.models import User
from roombook.backoffice import audit_log
from roombook.db.transactions import in_transaction


def get_new_device(user: User) -> TOTPDevice:
    """Return the device that the user is setting up. It counts once a code has confirmed it."""
    device, _ = TOTPDevice.objects.get_or_create(user=user, confirmed=False)
    return device


def render_qr_code(device: TOTPDevice) -> str:
    """Return SVG of the code that an authenticator app scans."""
    svg: str = segno.make(device.config_url).svg_inline(scale=4, border=2, light="white")
    return svg


def format_key(device: TOTPDevice) -> str:
    """Return the secret as apps want it typed: Base32, in groups of four."""
    key = b32encode(device.bin_key).decode().rstrip("=")
    return " ".join(key[start : start + 4] for start in range(0, len(key), 4))


def verify_code(user: User, code: str, attempts: SignInAttempts, *, now: datetime) -> bool:
    """Whether the code is right. A wrong one counts as a failed sign-in.

    Raises:
        TooManyRequests: too many failed attempts.
    """
    attempts.check(now)
    if user.second_factor_since is None:
        is_right = get_new_device(user).verify_token(code)
    else:
        is_right = match_token(user, code) is not None
    if not is_right:
        attempts.count(now)
    return is_right


@in_transaction
def turn_on(user: User, *, now: datetime) -> TOTPDevice:
    """Confirm the new device. All other sessions of the user end."""
    device: TOTPDevice = TOTPDevice.objects.get(user=user, confirmed=False)
    device.confirmed = True
    device.save(update_fields=["confirmed"])
    _save(user, now, by=user, note="The second factor was turned on.", now=now)
    return device


@in_transaction
def turn_off(user: User, *, by: User | None, now: datetime) -> None:
    """Remove the second factor. All sessions of the user end."""
    TOTPDevice.objects.filter(user=user).delete()
    _save(user, None, by=by, note="The second factor was turned off.", now=now)


def _save(user: User, since: datetime | None, *, by: User | None, note: str, now: datetime) -> None:
    user.second_factor_since = since
    user.save(update_fields=["second_factor_since"])
    audit_log.record_change(user, {}, by=by, note=note)
    emails.send_second_factor_changed(user.pk, user.email, is_on=since is not None, now=now)
