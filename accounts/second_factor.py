"""The second factor of staff: codes of an authenticator app (TOTP, RFC 6238), by django-otp (B18).

The back office asks for a code after the password. The API does not: there, staff see and do no
more than a customer. A recovery code, which works once, is accepted in place of a code of the app.
"""

from base64 import b32encode
from datetime import datetime
from hashlib import sha256
from secrets import token_bytes

import segno
from django.db import transaction
from django_otp import verify_token
from django_otp.plugins.otp_static.models import StaticDevice, StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts import emails
from accounts.limits import SignInAttempts
from accounts.models import User
from roombook.backoffice import audit_log
from roombook.db.transactions import in_transaction

RECOVERY_CODES = 10
# 16 characters of Base32 are 80 bits: their hash needs no salt. The table has room for 16.
RECOVERY_CODE_LENGTH = 16


def render_qr_code(device: TOTPDevice) -> str:
    """Return SVG of the code that an authenticator app scans."""
    svg: str = segno.make(device.config_url).svg_inline(scale=4, border=2, light="white")
    return svg


def format_key(device: TOTPDevice) -> str:
    """Return the secret as apps want it typed: Base32, in groups of four."""
    return _group(b32encode(device.bin_key).decode().rstrip("="), " ")


def _group(text: str, separator: str) -> str:
    return separator.join(text[start : start + 4] for start in range(0, len(text), 4))


def verify_code(
    user: User,
    code: str,
    attempts: SignInAttempts,
    *,
    new_device: TOTPDevice | None,
    now: datetime,
) -> bool:
    """Whether the code is right. A wrong one counts as a failed sign-in.

    A recovery code is right too, and is used up, unless the user is setting up a device.

    Args:
        new_device: the device that the user is setting up; None to verify a code of the saved one.

    Raises:
        TooManyRequests: too many failed attempts.
    """
    attempts.check(now)
    if new_device is None:
        # Wrong codes from elsewhere must not lock the owner out: only `attempts` limits them here.
        is_throttled = not attempts.is_from_known_network(now)
        is_right = _verify_saved_code(user, code, is_throttled=is_throttled)
    else:
        is_right = _verify_code_of_new_device(new_device, code)
    if not is_right:
        attempts.count(now)
        return False
    # Parallel attempts may have filled the window: then the right code came too late, too.
    attempts.check(now)
    return True


@in_transaction
def _verify_saved_code(user: User, code: str, *, is_throttled: bool) -> bool:
    """Let the library verify a code. After wrong ones it refuses all for ever longer times."""
    is_recovery_code = not code.isdecimal()
    devices = (StaticDevice if is_recovery_code else TOTPDevice).objects.filter(user=user)
    device = devices.filter(confirmed=True).first()
    if device is None:
        return False
    if not is_throttled:
        # Not `throttle_reset`, which saves all columns: a code used meanwhile would be valid again.
        devices.update(throttling_failure_count=0, throttling_failure_timestamp=None)
    token = _hash_recovery_code(code) if is_recovery_code else code
    if verify_token(user, device.persistent_id, token) is None:
        return False
    if is_recovery_code:
        note = f"A recovery code was used. Unused codes: {count_recovery_codes(user)}."
        audit_log.record_change(user, {}, by=user, note=note)
    return True


def _verify_code_of_new_device(device: TOTPDevice, code: str) -> bool:
    """Let the library verify a code. It saves the device, which only `turn_on` may do."""
    with transaction.atomic():
        is_right: bool = device.verify_token(code)
        transaction.set_rollback(True)
    device.pk = None
    return is_right


@in_transaction
def turn_on(user: User, device: TOTPDevice, *, now: datetime) -> list[str]:
    """Save the new device as the only one, and return new recovery codes.

    All other sessions of the user end. Networks that only a password made known are so no longer.
    """
    # Two set-ups at the same time must not leave two devices.
    User.objects.lock(user.pk)
    TOTPDevice.objects.filter(user=user).delete()
    user.known_networks.all().delete()
    device.save(force_insert=True)
    codes = replace_recovery_codes(user)
    _save(user, now, by=user, note="The second factor was turned on.", now=now)
    return codes


@in_transaction
def turn_off(user: User, *, by: User | None, now: datetime) -> None:
    """Remove the second factor. All sessions of the user end."""
    TOTPDevice.objects.filter(user=user).delete()
    StaticDevice.objects.filter(user=user).delete()
    _save(user, None, by=by, note="The second factor was turned off.", now=now)


@in_transaction
def replace_recovery_codes(user: User) -> list[str]:
    """Create new recovery codes, which end all others, and return them to show them once.

    The database has only their hashes: `verify_code` hashes what the user enters.
    """
    User.objects.lock(user.pk)
    StaticDevice.objects.filter(user=user).delete()
    device = StaticDevice.objects.create(user=user, name="recovery codes")
    codes = [
        b32encode(token_bytes(RECOVERY_CODE_LENGTH * 5 // 8)).decode()
        for _ in range(RECOVERY_CODES)
    ]
    StaticToken.objects.bulk_create(
        StaticToken(device=device, token=_hash_recovery_code(code)) for code in codes
    )
    audit_log.record_change(user, {}, by=user, note="New recovery codes were created.")
    return [_group(code, "-") for code in codes]


def _hash_recovery_code(code: str) -> str:
    digest = sha256(code.replace("-", "").upper().encode()).digest()
    return b32encode(digest).decode()[:RECOVERY_CODE_LENGTH]


def count_recovery_codes(user: User) -> int:
    """Return how many recovery codes the user can still use."""
    return StaticToken.objects.filter(device__user=user).count()


def _save(user: User, since: datetime | None, *, by: User | None, note: str, now: datetime) -> None:
    user.second_factor_since = since
    user.second_factor_changed_at = now
    user.save(update_fields=["second_factor_since", "second_factor_changed_at"])
    audit_log.record_change(user, {}, by=by, note=note)
    emails.send_second_factor_changed(user.pk, user.email, is_on=since is not None, now=now)
