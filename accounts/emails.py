"""Renders e-mails, and the e-mails about an account itself."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parseaddr
from typing import TypedDict

from babel.dates import format_datetime
from django.conf import settings
from django.template.loader import render_to_string

from accounts.models.outbox_message import OutboxMessage
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


def send(
    template: str,
    *,
    user_id: int | None,
    to: str,
    kind: str,
    about: str = "",
    button: str = "",
    expires_at: datetime | None = None,
    now: datetime,
    **context: object,
) -> None:
    """Write an e-mail about an account: a heading and paragraphs, as the template has them.

    The template is mail/TEMPLATE.txt, with the variables of the context, ``to``, ``service`` and
    ``contact``.
    """
    contact = settings.SUPPORT_EMAIL or "the people who run this service"
    context = {"to": to, "service": get_service_name(), "contact": contact, **context}
    text = render_to_string(f"mail/{template}.txt", context)
    heading, *paragraphs = [" ".join(each.split()) for each in re.split(r"\n\s*\n", text.strip())]
    enqueue_email(
        user_id=user_id,
        to=to,
        kind=kind,
        about=about or (f"account {user_id}" if user_id else ""),
        heading=heading,
        paragraphs=paragraphs,
        button=button,
        expires_at=expires_at,
        now=now,
    )


def send_password_changed(
    user_id: int, email: str, *, now: datetime, is_removed: bool = False
) -> None:
    """Notify an account's owner that the password was changed or removed."""
    change = "removed" if is_removed else "changed"
    _send_account_changed(user_id, email, "password", change, kind="password changed", now=now)


def send_second_factor_changed(user_id: int, email: str, *, is_on: bool, now: datetime) -> None:
    """Notify an account's owner that the second factor was turned on or off."""
    change = "turned on" if is_on else "turned off"
    _send_account_changed(user_id, email, "two-step sign-in", change, kind="second factor", now=now)


def _send_account_changed(
    user_id: int, email: str, what: str, change: str, *, kind: str, now: datetime
) -> None:
    """Notify the owner of a change, in case somebody else made it."""
    when = str(format_datetime(now.astimezone(UTC), "long", locale=settings.LOCALE))
    with suppress_mail_errors(f"account {user_id}"):
        send(
            "account_changed",
            user_id=user_id,
            to=email,
            kind=kind,
            now=now,
            what=what,
            change=change,
            # A narrow no-break space, which some mail programs cannot show.
            when=when.replace(chr(0x202F), " "),
        )
