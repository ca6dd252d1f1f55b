"""Renders e-mails, and the e-mails about an account itself."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parseaddr
from typing import TypedDict

from babel.dates import format_datetime
from django.conf import settings
from django.template.loader import render_to_string

from accounts.models.outbox_message import (
    EMAIL_CHANGE_KIND,
    PASSWORD_RESET_KIND,
    SIGN_UP_KIND,
    OutboxMessage,
)
from accounts.outbox import suppress_mail_errors


class EmailBody(TypedDict):
    text: str
    html: str


def render_email(template: str, context: Mapping[str, object]) -> EmailBody:
    """Render an e-mail's text and HTML.

    The context has ``heading``, ``paragraphs`` and the variables of the template. The text must
    be complete without the HTML.
    """
    context = {"service": get_service_name(), "support_email": settings.SUPPORT_EMAIL, **context}
    return {
        "text": render_to_string(f"mail/{template}.txt", context).strip() + "\n",
        "html": render_to_string(f"mail/{template}.html", context),
    }


def get_service_name() -> str:
    """The service's name for customers: the sender's name in e-mails."""
    name, address = parseaddr(settings.DEFAULT_FROM_EMAIL)
    return name or address


def enqueue_email(
    *,
    user_id: int | None,
    to: str,
    kind: str,
    about: str,
    heading: str,
    paragraphs: Sequence[str],
    button: str = "",
    attachment: tuple[str, bytes] | None = None,
    expires_at: datetime | None = None,
    now: datetime,
) -> None:
    """Write an e-mail of plain paragraphs, whose heading is also its subject, to the outbox.

    ``button`` is the label of a paragraph that is a URL; in the text, it is the URL alone.
    ``attachment`` is the name of a PDF file, and the file.
    """
    OutboxMessage.enqueue(
        user_id=user_id,
        to=to,
        kind=kind,
        about=about,
        subject=heading,
        attachment=attachment,
        expires_at=expires_at,
        now=now,
        **render_email("base", {"heading": heading, "paragraphs": paragraphs, "button": button}),
    )


def send_sign_up_code(email: str, code: str, *, expires_at: datetime, now: datetime) -> None:
    """Send the code that creates an account. Names are not in it: anybody could choose them."""
    service = get_service_name()
    enqueue_email(
        user_id=None,
        to=email,
        kind=SIGN_UP_KIND,
        about="sign-up",
        heading=f"Confirm your e-mail address for {service}",
        paragraphs=[
            f"Somebody, probably you, signs up for {service} with this address.",
            *_render_code(code),
        ],
        expires_at=expires_at,
        now=now,
    )


def send_password_reset_code(
    user_id: int | None,
    email: str,
    code: str | None,
    *,
    is_for_sign_up: bool,
    is_active: bool,
    expires_at: datetime,
    now: datetime,
) -> None:
    """Send the code that sets a new password, or the reason why there is none.

    ``is_for_sign_up``: somebody tried to sign up with the address of an account that exists.
    """
    service = get_service_name()
    if is_for_sign_up:
        heading = f"You already have an account at {service}"
        paragraphs = [
            f"Somebody, probably you, tried to sign up for {service} with this address. It already"
            " has an account: sign in with your password."
        ]
    else:
        heading = f"Reset your {service} password"
        paragraphs = [
            f"Somebody, probably you, requested a new password of the {service} account {email}."
        ]
    if code is not None:
        if is_for_sign_up:
            paragraphs.append("If you do not know it, choose a new one with a code.")
        paragraphs += _render_code(code)
    elif is_active:
        paragraphs.append(
            "This is an account of staff without two-step sign-in, whose password cannot be reset"
            " by e-mail. Ask an administrator for a new one."
        )
    else:
        paragraphs.append(f"The account is disabled. Please ask {_get_contact()}.")
    enqueue_email(
        user_id=user_id,
        to=email,
        kind=PASSWORD_RESET_KIND,
        about=f"account {user_id}" if user_id else "",
        heading=heading,
        paragraphs=paragraphs,
        expires_at=expires_at,
        now=now,
    )


def send_email_change_code(
    user_id: int, new_email: str, code: str | None, *, expires_at: datetime, now: datetime
) -> None:
    """Send the code that changes the address of an account, or say that the address has one."""
    service = get_service_name()
    if code is None:
        rest = ["This is not possible, because it has an account of its own. Nothing was changed."]
    else:
        rest = _render_code(code)
    enqueue_email(
        # The recipient is not known to be the account's owner.
        user_id=user_id if code else None,
        to=new_email,
        kind=EMAIL_CHANGE_KIND,
        about=f"account {user_id}" if code else "",
        heading=f"Confirm your new address for {service}",
        paragraphs=[
            f"Somebody, probably you, wants to use this address for a {service} account.",
            *rest,
        ],
        expires_at=expires_at,
        now=now,
    )


def send_email_change_notice(
    user_id: int, email: str, new_email: str, code: str, *, expires_at: datetime, now: datetime
) -> None:
    """Tell the owner of the present address, who can take the account back with the code."""
    service = get_service_name()
    enqueue_email(
        user_id=user_id,
        to=email,
        kind=EMAIL_CHANGE_KIND,
        about=f"account {user_id}",
        heading=f"The address of your {service} account is being changed",
        paragraphs=[
            f"Somebody, probably you, changes the address of your {service} account from {email} to"
            f" {new_email}. It changes as soon as the new address is confirmed.",
            "If that was you, there is nothing to do.",
            "If it was not you, somebody knows your password. Choose a new one in the app, under"
            f" “Forgot password”, with this address ({email}) and this code. That also takes the"
            " account back, and signs out all devices:",
            code,
            "The code is valid for seven days and works once.",
        ],
        expires_at=expires_at,
        now=now,
    )


def send_address_corrected(user_id: int, former_email: str, *, now: datetime) -> None:
    """Tell the reader of the former address. The new one is not theirs to know."""
    service = get_service_name()
    enqueue_email(
        user_id=user_id,
        to=former_email,
        kind=EMAIL_CHANGE_KIND,
        about=f"account {user_id}",
        heading=f"The address of a {service} account was changed",
        paragraphs=[
            f"Our staff have changed the e-mail address of the {service} account {former_email}."
            " From now on, we write to another address.",
            f"If you did not ask for that, please write to {_get_contact()}.",
        ],
        now=now,
    )


def _render_code(code: str) -> list[str]:
    return [
        "Enter this code in the app:",
        f"{code[:4]} {code[4:]}",
        "It is valid for 30 minutes and works once. Do not give it to anybody.",
        "If it was not you, ignore this e-mail: without the code, nothing changes.",
    ]


def send_password_changed(
    user_id: int, email: str, *, now: datetime, is_removed: bool = False
) -> None:
    """Notify an account's owner that the password was changed or removed."""
    change = "removed" if is_removed else "changed"
    _send_account_changed(
        user_id, email, what="password", change=change, kind="password changed", now=now
    )


def send_second_factor_changed(user_id: int, email: str, *, is_on: bool, now: datetime) -> None:
    """Notify an account's owner that the second factor was turned on or off."""
    change = "turned on" if is_on else "turned off"
    _send_account_changed(
        user_id, email, what="two-step sign-in", change=change, kind="second factor", now=now
    )


def _send_account_changed(
    user_id: int, email: str, *, what: str, change: str, kind: str, now: datetime
) -> None:
    """Notify the owner of a change, in case somebody else made it."""
    when = str(format_datetime(now.astimezone(UTC), "long", locale=settings.LOCALE))
    paragraphs = [
        f"The {what} of your {get_service_name()} account {email} was {change} on"
        # A narrow no-break space, which some mail programs cannot show.
        f" {when.replace(chr(0x202F), ' ')}. Other devices were signed out.",
        "If that was you, there is nothing to do.",
        f"If it was not you, somebody else may be using your account. Please tell"
        f" {_get_contact()} at once.",
    ]
    about = f"account {user_id}"
    with suppress_mail_errors(about):
        enqueue_email(
            user_id=user_id,
            to=email,
            kind=kind,
            about=about,
            heading=f"Your {what} was {change}",
            paragraphs=paragraphs,
            now=now,
        )


def _get_contact() -> str:
    return settings.SUPPORT_EMAIL or "the people who run this service"
