"""Payment setups: a card is saved without its number passing through this service (B21).

The gateway collects the card. The first to learn of its success (the app, a webhook or
reconcile_payments) saves the card, and the others find it saved. The row of the setup is locked
together with its account, so that there is always one saved card, and each one that is replaced is
deleted at its gateway.
"""

import logging
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings

from accounts.limits import CARD_DECLINED, RateLimit, get_payer_key
from accounts.models import User
from payments import gateway_events, gateways, saved_cards
from payments.gateways.base import GatewayCard, GatewaySetup
from payments.models import PaymentSetup, PaymentSetupState, SavedCard
from roombook.card_numbers import has_digits_of_a_card
from roombook.db.transactions import in_transaction
from roombook.errors import (
    CardDeclined,
    InvalidRequest,
    NotFound,
    PaymentSetupNotComplete,
    TooManyRequests,
)

logger = logging.getLogger(__name__)

# Stripe's hosted page can be open for 30 minutes at least, and for a day at most.
LIFETIME = timedelta(hours=1)
CREATED_SETUPS = RateLimit("payment-setup", 30, timedelta(hours=1))

# The setup in the examples of the API.
EXAMPLE_SETUP = "4c1d3c0a-6f0e-4f8b-9a55-0d5c6f2b7e10"

MAX_URL_LENGTH = 2000
EXPIRED = "The time to enter the card is over. You were not charged. Please start again."
KIND_NOT_ACCEPTED = "Cards of this kind are not accepted. You were not charged."
REPLACED = "Another card was saved in the meantime."
ACCOUNT_DISABLED = "The account is disabled."


@dataclass(frozen=True, slots=True)
class OpenedSetup:
    """A setup with what the app needs to let the customer enter a card."""

    setup: PaymentSetup
    publishable_key: str
    at_gateway: GatewaySetup

    @property
    def id(self) -> str:
        return str(self.setup.key)


# --- Creating ------------------------------------------------------------------------------------


@in_transaction
def create_setup(
    user: User, *, return_url: str, reservation_id: int | None = None, now: datetime
) -> PaymentSetup:
    """Store a new setup, before the gateway is called for it.

    With `reservation_id`, its card pays for that reservation only (one_time_cards.py).

    Raises NotSignedIn, or TooManyRequests after repeated declines, or too many setups.
    """
    User.objects.lock_active(user.pk)
    key = get_payer_key(user.pk, reservation_id)
    CARD_DECLINED.check(key, now=now)
    CREATED_SETUPS.attempt(key, now=now)
    return PaymentSetup.objects.create(
        user=user,
        gateway=gateways.get_current_gateway().name,
        return_url=return_url,
        reservation_id=reservation_id,
        created_at=now,
        expires_at=now + LIFETIME,
    )


def open_setup(setup: PaymentSetup, *, own_page: str) -> OpenedSetup:
    """Create the setup at its gateway, or find it there. May be repeated.

    The gateway's page leads to `own_page`, and that to the app, unless the return URL is a page.
    """
    gateway = gateways.get_gateway(setup.gateway)
    if setup.reference:
        at_gateway = gateway.find_setup(setup.reference)
    else:
        at_gateway = gateway.create_setup(
            key=setup.key,
            customer=str(setup.user_id),
            return_url=setup.return_url if is_page(setup.return_url) else own_page,
            expires_at=setup.expires_at,
        )
        PaymentSetup.objects.filter(pk=setup.pk).update(reference=at_gateway.reference)
    return OpenedSetup(setup, gateway.publishable_key, at_gateway)


def is_page(url: str) -> bool:
    """Whether the URL is a page, to which every gateway leads, and not an app or empty."""
    return urlsplit(url).scheme == "https"


def check_return_url(url: str) -> None:
    """Raise InvalidRequest unless the URL begins with https:// or the scheme of a known app."""
    # Browsers remove control characters, and read a backslash as a slash.
    is_plain = re.fullmatch(r"[!-~]+", url) and not re.search(r"[\\\"<>`{}|^]", url)
    try:
        parts = urlsplit(url)
        is_valid = bool(is_plain) and not parts.username and not parts.password
        is_valid = is_valid and "@" not in parts.netloc and (parts.port or 1) > 0
    except ValueError:
        is_valid = False
    if is_valid and parts.scheme == "https":
        is_valid = bool(parts.hostname)
    elif is_valid:
        is_valid = parts.scheme in settings.PAYMENT_RETURN_URLS
    if not is_valid:
        raise InvalidRequest(
            {"return_url": "Must begin with https:// or with the scheme of an app that is known."}
        )


# --- Completing ----------------------------------------------------------------------------------


def get_own_setup(user: User, setup_id: UUID) -> PaymentSetup:
    """Return the user's setup, or raise NotFound."""
    setup = PaymentSetup.objects.filter(user=user, key=setup_id, reservation=None).first()
    if setup is None:
        raise NotFound
    return setup


def complete_setup(user: User, setup_id: str, *, now: datetime) -> SavedCard | None:
    """Save the card of a setup that has succeeded, and return the account's saved card.

    Repeating it changes nothing: if another card was saved since, that one is returned, and None if
    the card was removed.

    Raises:
        NotFound: the account has no such setup.
        PaymentSetupNotComplete: the customer has not finished.
        CardDeclined: the card was refused, or the setup has expired.
        ServiceUnavailable: the gateway does not answer.
    """
    try:
        setup = get_own_setup(user, UUID(setup_id))
    except ValueError:
        raise NotFound from None
    require_success(setup, now=now)
    return SavedCard.objects.filter(user=user).first()


def require_success(setup: PaymentSetup, *, now: datetime) -> GatewaySetup | None:
    """Resolve the setup. Raises PaymentSetupNotComplete or CardDeclined unless it has succeeded.

    Returns the gateway's answer, if it was called.
    """
    at_gateway = resolve_setup(setup, now=now)
    setup.refresh_from_db()
    if setup.state == PaymentSetupState.SUCCEEDED:
        return at_gateway
    if setup.state == PaymentSetupState.OPEN and at_gateway and at_gateway.state == "failed":
        is_new = False
        for attempt in at_gateway.refused_attempts:
            record_refusal(setup, attempt, at_gateway.message, now=now)
            # Not what `record_refusal` has found: the webhook knows no network, and may be first.
            is_new |= gateway_events.mark_processed(f"{attempt} answered", "refused setup", now=now)
        raise CardDeclined(at_gateway.message, is_new=is_new)
    if setup.state == PaymentSetupState.OPEN:
        raise PaymentSetupNotComplete
    # No card was entered before it expired, or an earlier call has said that it was refused.
    is_new = at_gateway is not None and setup.state == PaymentSetupState.FAILED
    raise CardDeclined(setup.message, is_new=is_new)


def resolve_setup(
    setup: PaymentSetup, *, now: datetime, keeps_newer_card: bool = False
) -> GatewaySetup | None:
    """Ask the gateway about an open setup, and save its card if there is one.

    A setup whose time is over is ended at the gateway first, so that no card can be entered later.
    With `keeps_newer_card`, a card that was saved after the setup was created stays.
    """
    if setup.state != PaymentSetupState.OPEN:
        return None
    if not setup.reference:
        # Nobody got its secrets: the worker died, or the gateway did not answer.
        if setup.expires_at <= now:
            _end_setup(setup, PaymentSetupState.EXPIRED, EXPIRED)
        return None
    gateway = gateways.get_gateway(setup.gateway)
    found = gateway.find_setup(setup.reference)
    if found.state == "succeeded" or setup.expires_at <= now:
        found = gateway.cancel_setup(setup.reference)
    if found.card and setup.reservation_id:
        _store_one_time_card(setup, found.card)
    elif found.card:
        unused = _replace_saved_card(setup, found.card, keeps_newer_card=keeps_newer_card, now=now)
        if unused:
            saved_cards.delete_card_at_gateway(*unused)
    elif found.state == "expired":
        _end_setup(setup, PaymentSetupState.EXPIRED, found.message or EXPIRED)
    return found


def record_refusal(setup: PaymentSetup, attempt: str, message: str, *, now: datetime) -> None:
    """Store why a card of an open setup was refused, and count the attempt like a declined card.

    The app and the webhook report the same attempt, which counts once.
    """
    PaymentSetup.objects.open().filter(pk=setup.pk).update(message=message[:255])
    try:
        _count_refusal(setup, attempt, now=now)
    except TooManyRequests:
        # Somebody tries out card numbers.
        cancel_setup(setup)


@in_transaction
def _count_refusal(setup: PaymentSetup, attempt: str, *, now: datetime) -> None:
    """Raise TooManyRequests beyond the limit. The attempt is not remembered then, so that a setup
    that could not be ended is ended by the next report.
    """
    if gateway_events.mark_processed(attempt, "refused setup attempt", now=now):
        CARD_DECLINED.attempt(get_payer_key(setup.user_id, setup.reservation_id), now=now)


def cancel_setup(setup: PaymentSetup) -> None:
    """End a setup at the gateway, then here. If its card was entered before, that is deleted."""
    gateway = gateways.get_gateway(setup.gateway)
    found = gateway.cancel_setup(setup.reference) if setup.reference else None
    if _end_setup(setup, PaymentSetupState.EXPIRED, EXPIRED) and found and found.card:
        saved_cards.delete_card_at_gateway(setup.gateway, found.card.reference)


@in_transaction
def _end_setup(setup: PaymentSetup, state: PaymentSetupState, message: str) -> bool:
    """Set the final state. False if the setup has ended before."""
    return bool(
        PaymentSetup.objects.open().filter(pk=setup.pk).update(state=state, message=message[:255])
    )


def _find_problem(card: GatewayCard, user: User) -> str:
    """Return why the card is not accepted; empty if it is."""
    if card.brand is None:
        return KIND_NOT_ACCEPTED
    return "" if user.is_active else ACCOUNT_DISABLED


def _store_one_time_card(setup: PaymentSetup, card: GatewayCard) -> None:
    problem = _find_problem(card, setup.user)
    state = PaymentSetupState.FAILED if problem else PaymentSetupState.SUCCEEDED
    # Also if it is not accepted: `reconcile_payments` deletes it.
    PaymentSetup.objects.open().filter(pk=setup.pk).update(
        state=state, message=problem, card_reference=card.reference
    )


@in_transaction
def _replace_saved_card(
    setup: PaymentSetup, card: GatewayCard, *, keeps_newer_card: bool, now: datetime
) -> tuple[str, str] | None:
    """Save the card, and return the gateway and the reference of the card that is now unused."""
    user = User.objects.lock(setup.user_id)
    newer_cards = SavedCard.objects.filter(user=user, created_at__gt=setup.created_at)
    problem = _find_problem(card, user)
    if not problem and keeps_newer_card and newer_cards.exists():
        problem = REPLACED
    state = PaymentSetupState.FAILED if problem else PaymentSetupState.SUCCEEDED
    if not _end_setup(setup, state, problem):
        # Another request has stored the outcome, or the account was erased.
        return None if user.is_active else (setup.gateway, card.reference)
    if problem:
        return setup.gateway, card.reference
    saved = build_saved_card(user, setup.gateway, card, now=now)
    previous = saved_cards.replace_saved_card(saved)
    return (previous.gateway, previous.reference) if previous else None


def build_saved_card(user: User, gateway: str, card: GatewayCard, *, now: datetime) -> SavedCard:
    """Describe a card of the gateway. Its holder is the customer if the gateway has no name."""
    name = " ".join(card.name.split())
    first_name, _, last_name = name.rpartition(" ")
    if not first_name or has_digits_of_a_card(name):
        first_name, last_name = user.first_name, user.last_name
    address = {
        part: text[:255]
        for part, text in card.billing_address.items()
        if not has_digits_of_a_card(text)
    }
    return SavedCard(
        user=user,
        gateway=gateway,
        reference=card.reference,
        brand=card.brand or "",
        last4=card.last4,
        exp_year=card.exp_year,
        exp_month=card.exp_month,
        first_name=first_name[:255],
        last_name=last_name[:255],
        has_cvv=card.has_cvv,
        saved_by_setup=True,
        created_at=now,
        **address,
    )
