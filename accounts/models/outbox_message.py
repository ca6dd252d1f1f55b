"""The outbox: e-mails are written in the transaction of the change that they report, and sent
later by accounts/outbox.py.

Therefore no e-mail reports a change that was rolled back, no e-mail is lost if a process dies, and
bookings succeed while the mail server is down.
"""

import re
import uuid
from collections.abc import Mapping
from datetime import datetime
from email.utils import parseaddr
from typing import Self

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.db import models, transaction
from django.db.models import Q

from accounts.models.account_erasure import UNREAD
from roombook.deliveries import Delivery, DeliveryQuerySet, DeliveryState

MAX_SUBJECT_LENGTH = 200
MAX_ERROR_LENGTH = 500

# These e-mails contain a link or a code that opens an account: pages do not show their text,
# and it is not kept.
INVITATION_KIND = "staff invitation"
SIGN_UP_KIND = "sign-up"
PASSWORD_RESET_KIND = "password reset"
EMAIL_CHANGE_KIND = "e-mail change"
PAYMENT_LINK_KIND = "payment link"
SECRET_KINDS = frozenset(
    {
        *(INVITATION_KIND, SIGN_UP_KIND, PASSWORD_RESET_KIND, EMAIL_CHANGE_KIND),
        PAYMENT_LINK_KIND,
    }
)

# An e-mail about a reservation that does not report a change of it.
RECEIPT_KIND = "receipt"


class OutboxQuerySet(DeliveryQuerySet["OutboxMessage"]):
    def expired(self, now: datetime) -> Self:
        """Return messages that are no use any more, such as a reminder after the start.

        Not those that a process is sending: it records what becomes of them.
        """
        return self.due(now).filter(expires_at__lte=now)

    def about(self, subject: str) -> Self:
        """Return all messages about one subject, such as "reservation 17", the oldest first."""
        return self.filter(about=subject).order_by("pk")


class OutboxMessage(Delivery):
    """One e-mail, from being written until it is sent or has failed."""

    key = models.UUIDField(
        default=uuid.uuid4, editable=False, help_text="The Message-ID is made from it."
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="mails"
    )
    to = models.EmailField(max_length=254)
    kind = models.CharField(max_length=40)
    about = models.CharField(max_length=60, blank=True, help_text='Such as "reservation 17".')
    subject = models.CharField(max_length=MAX_SUBJECT_LENGTH)
    text = models.TextField()
    html = models.TextField(blank=True)
    calendar = models.TextField(blank=True, help_text="The meeting, for the customer's calendar.")
    calendar_method = models.CharField(max_length=20, blank=True)
    attachment = models.BinaryField(null=True, editable=False, help_text="A PDF.")
    attachment_name = models.CharField(max_length=100, blank=True, default="")
    expires_at = models.DateTimeField(
        null=True, editable=False, help_text="It is not sent after this time, but deleted."
    )
    known = models.JSONField(
        null=True,
        editable=False,
        help_text="What its reader knew before it, for the next e-mail if this one is withdrawn.",
    )
    last_error = models.CharField(max_length=MAX_ERROR_LENGTH, blank=True)

    objects = models.Manager.from_queryset(OutboxQuerySet)()

    class Meta:
        verbose_name = "e-mail"
        constraints = [
            *Delivery.Meta.constraints,
            models.CheckConstraint(
                condition=Q(calendar="", calendar_method="")
                | (~Q(calendar="") & ~Q(calendar_method="")),
                name="outbox_message_calendar_has_its_method",
            ),
        ]
        indexes = [
            *Delivery.Meta.indexes,
            # Few messages are waiting, however many were sent.
            models.Index(
                fields=["next_attempt_at"],
                condition=Q(state="waiting"),
                name="outbox_message_due",
            ),
            # erase_expired deletes the oldest.
            models.Index(fields=["created_at"], name="outbox_message_by_time"),
            models.Index(fields=["about"], name="outbox_message_by_its_matter"),
        ]

    def __str__(self) -> str:
        return f"e-mail {self.pk} ({', '.join(part for part in (self.kind, self.about) if part)})"

    @classmethod
    def enqueue(
        cls,
        *,
        user_id: int | None,
        to: str,
        kind: str,
        subject: str,
        text: str,
        html: str = "",
        about: str = "",
        calendar: str = "",
        calendar_method: str = "",
        attachment: tuple[str, bytes] | None = None,
        expires_at: datetime | None = None,
        known: Mapping[str, object] | None = None,
        send_at: datetime | None = None,
        now: datetime,
    ) -> "OutboxMessage":
        """Write an e-mail; it is sent after the open transaction is committed, at `send_at`."""
        require_transaction()
        if to.endswith(UNREAD):
            # Nobody reads it: it is deleted instead of sent.
            expires_at = now
        attachment_name, attached = attachment or ("", None)
        return cls.objects.create(
            user_id=user_id,
            to=to,
            kind=kind,
            about=about,
            subject=collapse_whitespace(subject)[:MAX_SUBJECT_LENGTH],
            text=text,
            html=html,
            calendar=calendar,
            calendar_method=calendar_method,
            attachment=attached,
            attachment_name=attachment_name,
            created_at=now,
            next_attempt_at=send_at or now,
            known=known,
            expires_at=expires_at,
        )

    @property
    def is_secret(self) -> bool:
        """Whether the text opens an account; it is deleted when the e-mail is sent or fails."""
        return self.kind in SECRET_KINDS

    @property
    def text_without_secrets(self) -> str:
        return "" if self.is_secret else self.text

    def send_again(self, *, now: datetime) -> bool:
        """Let the e-mail be sent once more; returns False if it is waiting to be sent anyway.

        A secret one cannot be sent again.

        If it was sent already, a copy is made: the record of the first one stays, and the copy has
        another Message-ID, because mail programs hide repetitions.
        """
        if self.is_secret:
            return False
        if self.state == DeliveryState.SENT:
            reset = {
                "state": DeliveryState.WAITING,
                "attempts": 0,
                "sent_at": None,
                "last_error": "",
            }
            fields = {
                field.attname: getattr(self, field.attname)
                for field in self._meta.concrete_fields
                if field.name not in {"id", "key", *reset}
            }
            fields |= {**reset, "created_at": now, "next_attempt_at": now, "expires_at": None}
            OutboxMessage.objects.create(**fields)
            return True
        return self.queue_again(now=now, expires_at=None)

    @property
    def as_email(self) -> EmailMultiAlternatives:
        """The e-mail as it is sent: text, HTML, the meeting for the calendar and the attachment."""
        email = EmailMultiAlternatives(
            subject=self.subject,
            body=self.text,
            from_email=settings.DEFAULT_FROM_EMAIL,
            to=[self.to],
            reply_to=[settings.SUPPORT_EMAIL] if settings.SUPPORT_EMAIL else None,
            headers={
                "Message-ID": f"<{self.key}@{get_sender_address().rpartition('@')[2]}>",
                # Suppresses automatic replies.
                "Auto-Submitted": "auto-generated",
            },
        )
        if self.html:
            email.attach_alternative(self.html, "text/html")
        if self.calendar:
            # Calendar programs use the alternative; the file is for programs that do not.
            method = self.calendar_method
            email.attach_alternative(self.calendar, f"text/calendar; method={method}")
            email.attach("invite.ics", self.calendar.encode(), "application/ics")
        if self.attachment:
            email.attach(self.attachment_name, bytes(self.attachment), "application/pdf")
        return email


def collapse_whitespace(text: str) -> str:
    """Replace each run of whitespace and control characters by one space, as headers require."""
    return re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", text).strip()


def get_sender_address() -> str:
    """The address that e-mails are sent from, without the name."""
    return parseaddr(settings.DEFAULT_FROM_EMAIL)[1]


def require_transaction() -> None:
    """Raise RuntimeError outside a transaction: the e-mail could be sent although the change that
    it reports was rolled back, or be lost although it was committed."""
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("An e-mail must be written in the transaction that it reports.")
