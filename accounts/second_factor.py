"""The second factor of staff: codes of an authenticator app (TOTP, RFC 6238), by django-otp (B18).

The back office asks for a code after the password. The API does not: there, staff see and do no
more than a customer.
"""

from base64 import b32encode
from collections.abc import Iterable
from datetime import datetime
from secrets import token_hex

import segno
from django_otp import match_token
from django_otp.oath import TOTP
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts import emails
from accounts.limits import SignInAttempts
from accounts.models import User
from roombook.backoffice import audit_log
from roombook.db.transactions import in_transaction


def create_key() -> str:
    """Return a new random secret, in hexadecimal digits."""
    return token_hex(20)


def build_device(user: User, key: str) -> TOTPDevice:
    """Return the device that the user is setting up. Only `turn_on` saves it."""
    return TOTPDevice(user=user, key=key)


def render_qr_code(device: TOTPDevice) -> str:
    """Return SVG of the code that an authenticator app scans."""
    svg: str = segno.make(device.config_url).svg_inline(scale=4, border=2, light="white")
    return svg


def format_key(device: TOTPDevice) -> str:
    """Return the secret as apps want it typed: Base32, in groups of four."""
    key = b32encode(device.bin_key).decode().rstrip("=")
    return " ".join(key[start : start + 4] for start in range(0, len(key), 4))


def verify_code(
    user: User,
    code: str,
    attempts: SignInAttempts,
    *,
    new_device: TOTPDevice | None,
    now: datetime,
) -> bool:
    """Whether the code is right. A wrong one counts as a failed sign-in.

    Args:
        new_device: the device that the user is setting up; None to verify a code of the saved one.

    Raises:
        TooManyRequests: too many failed attempts.
    """
    attempts.check(now)
    if new_device is None:
        is_right = match_token(user, code) is not None
    else:
        is_right = _verify_code_of_new_device(new_device, code, now)
    if not is_right:
        attempts.count(now)
    return is_right


def _verify_code_of_new_device(device: TOTPDevice, code: str, now: datetime) -> bool:
    """Do what `TOTPDevice.verify_token` does, but without saving the device."""
    if not code.isdecimal():
        return False
    totp = TOTP(device.bin_key, device.step, device.t0, device.digits, device.drift)
    totp.time = now.timestamp()
    if not totp.verify(int(code), device.tolerance, device.last_t + 1):
        return False
    device.last_t = totp.t()
    device.drift = totp.drift
    return True


@in_transaction
def turn_on(user: User, device: TOTPDevice, *, now: datetime) -> None:
    """Save the new device as the only one. All other sessions of the user end."""
    # Two set-ups at the same time must not leave two devices.
    User.objects.lock(user.pk)
    TOTPDevice.objects.filter(user=user).delete()
    device.save(force_insert=True)
    _save(user, now, by=user, note="The second factor was turned on.", now=now)


@in_transaction
def turn_off(user: User, *, by: User | None, now: datetime) -> None:
    """Remove the second factor. All sessions of the user end."""
    TOTPDevice.objects.filter(user=user).delete()
    _save(user, None, by=by, note="The second factor was turned off.", now=now)


def delete_unconfirmed_devices(users: Iterable[User]) -> None:
    """Delete the devices that earlier versions saved before a code had confirmed them."""
    TOTPDevice.objects.filter(user__in=users, confirmed=False).delete()


def _save(user: User, since: datetime | None, *, by: User | None, note: str, now: datetime) -> None:
    user.second_factor_since = since
    user.second_factor_changed_at = now
    user.save(update_fields=["second_factor_since", "second_factor_changed_at"])
    audit_log.record_change(user, {}, by=by, note=note)
    emails.send_second_factor_changed(user.pk, user.email, is_on=since is not None, now=now)
