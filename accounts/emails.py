"""The mails' common form, and what an account is told about itself."""

from datetime import UTC, datetime
from email.utils import parseaddr
from typing import TYPE_CHECKING, Any

from babel.dates import format_datetime
from django.conf import settings
from django.template.loader import render_to_string

from accounts.outbox import OutboxMessage, suppress_mail_errors

if TYPE_CHECKING:
    from accounts.models import User


def render_email(template: str, context: dict[str, Any]) -> dict[str, str]:
    """A mail's text and HTML, out of one context: heading, paragraphs and what the template adds.

    The text says everything by itself.
    """
    common = {"service": get_service_name(), "support_email": settings.SUPPORT_EMAIL, **context}
    return {
        "text": render_to_string(f"mail/{template}.txt", common).strip() + "\n",
        "html": render_to_string(f"mail/{template}.html", common),
    }


def get_service_name() -> str:
    """What customers know us as: the name that mails come from."""
    name, address = parseaddr(settings.DEFAULT_FROM_EMAIL)
    return name or address


def send_password_changed(user: "User", *, now: datetime, was_taken_away: bool = False) -> None:
    """Tell the owner that their password is another one now, in case it was not them."""
    when = str(format_datetime(now.astimezone(UTC), "long", locale=settings.LOCALE))
    what_happened = "removed" if was_taken_away else "changed"
    help_is_at = settings.SUPPORT_EMAIL or "the people who run this service"
    paragraphs = [
        f"The password of your {get_service_name()} account {user.email} was {what_happened} on"
        f" {when.replace(chr(0x202F), ' ')}. Other devices were signed out.",
        "If that was you, there is nothing to do.",
        f"If it was not you, somebody else may be using your account. Tell {help_is_at} at once.",
    ]
    with suppress_mail_errors(f"account {user.pk}"):
        heading = f"Your password was {what_happened}"
        OutboxMessage.enqueue(
            user,
            kind="password changed",
            about=f"account {user.pk}",
            subject=heading,
            now=now,
            **render_email("base", {"heading": heading, "paragraphs": paragraphs}),
        )
