"""The outbox: a mail is written in the transaction that moves what it tells of, and sent later.

So there is no mail about what never happened, none is forgotten when a process dies, and a mail
server that is down harms no booking. Sending is at least once: whoever dies between handing a mail
to the server and noting that down leaves it to be sent again. Every sending of one mail carries the
same Message-ID, by which mail programs know a repetition.
"""

import logging
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from email.utils import parseaddr
from typing import TYPE_CHECKING, Any, Self

from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.db import OperationalError, models, transaction
from django.db.models import F, Q

from roombook.db.prepared_writes import prepared_writes

if TYPE_CHECKING:
    from accounts.models import User

logger = logging.getLogger(__name__)

# How long a mail rests after each try that failed; after the last one a person must look.
RETRY_DELAYS = (
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=6),
    timedelta(hours=24),
)
MAX_ATTEMPTS = len(RETRY_DELAYS) + 1

# For so long a mail belongs to the process that tries to send it; after that it is taken for dead.
SENDING_LEASE = timedelta(minutes=10)

MAX_SUBJECT_LENGTH = 200
MAX_ERROR_LENGTH = 500


class OutboxState(models.TextChoices):
    WAITING = "waiting"
    SENT = "sent"
    FAILED = "given up"


class OutboxQuerySet(models.QuerySet["OutboxMessage"]):
    def waiting(self) -> Self:
        return self.filter(state=OutboxState.WAITING)

    def due(self, moment: datetime) -> Self:
        """Those whose next try is for now, the longest waiting first."""
        return self.waiting().filter(next_attempt_at__lte=moment).order_by("next_attempt_at", "pk")

    def about(self, subject: str) -> Self:
        """All mails about one thing, as they were written."""
        return self.filter(about=subject).order_by("pk")


@prepared_writes
class OutboxMessage(models.Model):
    """One mail, from being written to being sent or given up."""

    key = models.UUIDField(
        default=uuid.uuid4, editable=False, help_text="What the Message-ID is made of."
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
    state = models.CharField(
        max_length=10, choices=OutboxState.choices, default=OutboxState.WAITING
    )
    attempts = models.PositiveSmallIntegerField("tries", default=0)
    created_at = models.DateTimeField()
    next_attempt_at = models.DateTimeField("next try", null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=MAX_ERROR_LENGTH, blank=True)

    objects = models.Manager.from_queryset(OutboxQuerySet)()

    class Meta:
        verbose_name = "mail"
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=OutboxState.values), name="outbox_message_state_is_known"
            ),
            models.CheckConstraint(
                condition=Q(state="waiting", next_attempt_at__isnull=False)
                | (~Q(state="waiting") & Q(next_attempt_at__isnull=True)),
                name="outbox_message_waits_for_its_next_try",
            ),
            models.CheckConstraint(
                condition=Q(state="sent", sent_at__isnull=False)
                | (~Q(state="sent") & Q(sent_at__isnull=True)),
                name="outbox_message_sent_has_its_time",
            ),
            models.CheckConstraint(
                condition=Q(calendar="", calendar_method="")
                | (~Q(calendar="") & ~Q(calendar_method="")),
                name="outbox_message_calendar_has_its_method",
            ),
        ]
        indexes = [
            # The few that are yet to be sent, however many there were.
            models.Index(
                fields=["next_attempt_at"],
                condition=Q(state="waiting"),
                name="outbox_message_due",
            ),
            models.Index(fields=["about"], name="outbox_message_by_its_matter"),
            # The few that a person has to see to.
            models.Index(
                fields=["created_at"],
                condition=Q(state="given up"),
                name="outbox_message_given_up",
            ),
        ]

    def __str__(self) -> str:
        return f"mail {self.pk} ({', '.join(part for part in (self.kind, self.about) if part)})"

    # Factories

    @classmethod
    def enqueue(
        cls,
        user: "User",
        *,
        kind: str,
        subject: str,
        text: str,
        html: str = "",
        about: str = "",
        calendar: str = "",
        calendar_method: str = "",
        now: datetime,
    ) -> "OutboxMessage":
        """Write a mail to an account, to be sent once the open transaction is committed."""
        require_transaction()
        return cls.objects.create(
            user=user,
            to=user.email,
            kind=kind,
            about=about,
            subject=collapse_whitespace(subject)[:MAX_SUBJECT_LENGTH],
            text=text,
            html=html,
            calendar=calendar,
            calendar_method=calendar_method,
            created_at=now,
            next_attempt_at=now,
        )

    # Mutators

    def send_again(self, *, now: datetime) -> bool:
        """Let it be sent once more; says whether that is new, as a waiting one is sent anyway.

        A mail that was sent is written anew, so that the record of the first stays, and under
        another Message-ID, since mail programs hide a repetition.
        """
        if self.state == OutboxState.SENT:
            again = {"state": OutboxState.WAITING, "attempts": 0, "sent_at": None, "last_error": ""}
            fields = {
                field.attname: getattr(self, field.attname)
                for field in self._meta.concrete_fields
                if field.name not in {"id", "key", *again}
            }
            fields |= {**again, "created_at": now, "next_attempt_at": now}
            OutboxMessage.objects.create(**fields)
            return True
        given_up = OutboxMessage.objects.filter(pk=self.pk, state=OutboxState.FAILED)
        return bool(given_up.update(state=OutboxState.WAITING, attempts=0, next_attempt_at=now))

    # Properties

    @property
    def as_email(self) -> EmailMultiAlternatives:
        """The mail as it goes out: text, the same as HTML, and the meeting for the calendar."""
        email = EmailMultiAlternatives(
            subject=self.subject,
            body=self.text,
            from_email=settings.DEFAULT_FROM_EMAIL,
            to=[self.to],
            reply_to=[settings.SUPPORT_EMAIL] if settings.SUPPORT_EMAIL else None,
            headers={
                "Message-ID": f"<{self.key}@{get_sender_address().rpartition('@')[2]}>",
                # No answers by machines that are on holiday.
                "Auto-Submitted": "auto-generated",
            },
        )
        if self.html:
            email.attach_alternative(self.html, "text/html")
        if self.calendar:
            # The alternative is what calendars act on; the file is for those that do not.
            method = self.calendar_method
            email.attach_alternative(self.calendar, f"text/calendar; method={method}")
            email.attach("invite.ics", self.calendar.encode(), "application/ics")
        return email


def collapse_whitespace(text: str) -> str:
    """The text with every run of white space and control characters as one space: fit for a
    header, or for one row among others."""
    return re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", text).strip()


def get_sender_address() -> str:
    """The bare address that mails come from."""
    return parseaddr(settings.DEFAULT_FROM_EMAIL)[1]


def require_transaction() -> None:
    """A defect if none is open: the mail could outlive what it tells of, or never be written."""
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("A mail belongs into the transaction that does what it tells of.")


@contextmanager
def suppress_mail_errors(about: str) -> Iterator[None]:
    """Around the writing of a mail: whatever is wrong with it, what it tells of goes on.

    Only the database's own call for another try gets through: then all is done again.
    """
    require_transaction()
    try:
        with transaction.atomic():
            yield
    except OperationalError:
        raise
    except Exception:
        logger.exception("The mail about %s could not be written.", about)


# --- Sending -------------------------------------------------------------------------------------


def send_due_messages(
    *, clock: Callable[[], datetime], limit: int | None = None
) -> Iterator[OutboxMessage]:
    """Try what is due at the beginning, each mail once, and yield it as it then is.

    Safe beside itself: a mail is claimed by one conditional update, and no transaction or lock is
    held while it is sent. Ends early when the mail server cannot be reached, since every further
    mail would only wait for it as well. `clock` tells the time, as sending takes long.
    """
    beginning, tried = clock(), 0
    while limit is None or tried < limit:
        message = OutboxMessage.objects.due(beginning).first()
        if message is None:
            return
        if not _claim(message, clock()):
            continue
        tried += 1
        reached = _send(message, clock)
        yield message
        if not reached:
            return


def _claim(message: OutboxMessage, now: datetime) -> bool:
    """Make the mail ours for a while; False if somebody else was quicker."""
    claimed = (
        OutboxMessage.objects.waiting()
        .filter(pk=message.pk, attempts=message.attempts, next_attempt_at=message.next_attempt_at)
        .update(attempts=F("attempts") + 1, next_attempt_at=now + SENDING_LEASE)
    )
    message.attempts += 1
    return bool(claimed)


def _send(message: OutboxMessage, clock: Callable[[], datetime]) -> bool:
    """Send a claimed mail and note what came of it; False if the server cannot be reached."""
    if message.attempts > MAX_ATTEMPTS:
        # Each of its tries ended with the process: perhaps because of it.
        _record_failure(message, "The last try never ended.", clock())
        return True
    connection = get_connection()
    try:
        connection.open()
    except Exception as error:
        _record_failure(message, _describe_error(error), clock())
        return False
    try:
        email = message.as_email
        email.connection = connection
        if email.send() == 0:
            raise ValueError("There is nobody to send it to.")
    except Exception as error:
        _record_failure(message, _describe_error(error), clock())
    else:
        # Whatever another process made of it meanwhile: sent it is.
        _record_result(
            message,
            OutboxMessage.objects.exclude(state=OutboxState.SENT),
            state=OutboxState.SENT,
            sent_at=clock(),
            next_attempt_at=None,
            last_error="",
        )
    finally:
        # Bad manners at the farewell do not take the mail back.
        with suppress(Exception):
            connection.close()
    return True


def _record_failure(message: OutboxMessage, problem: str, now: datetime) -> None:
    mine = OutboxMessage.objects.waiting().filter(attempts=message.attempts)
    if message.attempts < MAX_ATTEMPTS:
        next_attempt_at = now + RETRY_DELAYS[message.attempts - 1]
        _record_result(message, mine, next_attempt_at=next_attempt_at, last_error=problem)
        logger.warning("%s could not be sent: %s", message, problem)
    else:
        given_up = OutboxState.FAILED
        _record_result(message, mine, state=given_up, next_attempt_at=None, last_error=problem)
        logger.error("%s is given up after %s tries: %s", message, message.attempts, problem)


def _record_result(message: OutboxMessage, where: OutboxQuerySet, **columns: Any) -> None:
    where.filter(pk=message.pk).update(**columns)
    for name, value in columns.items():
        setattr(message, name, value)


def _describe_error(error: Exception) -> str:
    return collapse_whitespace(f"{type(error).__name__}: {error}")[:MAX_ERROR_LENGTH]
