"""The errors of the domain, each with a stable code. api/errors.py maps them to HTTP."""

from collections.abc import Mapping


class DomainError(Exception):
    """A request that cannot be fulfilled.

    `message` is written for the customer, `code` for programs, and `details` for engineers.
    """

    code = "InternalError"
    default_message = "Something went wrong."
    retry_after: int | None = None

    def __init__(self, message: str = "", *, details: tuple[str, ...] = ()) -> None:
        self.message = message or self.default_message
        self.details = details
        super().__init__(self.message)


class InvalidRequest(DomainError):
    """Fields are missing, of the wrong type or out of bounds.

    `fields` maps attribute paths (`payment_info.first_name`, `service_options.2.quantity`) to
    reasons. The API translates each path to its name in the contract.
    """

    code = "InvalidRequest"
    default_message = "The request is not valid."

    def __init__(self, fields: Mapping[str, str] | None = None, message: str = "") -> None:
        self.fields = dict(fields or {})
        super().__init__(message)


class CardNumberRefused(DomainError):
    """The request contains a card number, which this deployment does not accept (B21.4)."""

    code = "InvalidRequest"
    default_message = (
        "Card numbers are not accepted here. Please add your card on the payment page of the app,"
        " or update the app."
    )


class InvalidCredentials(DomainError):
    code = "InvalidCredentials"
    default_message = "The e-mail address or the password is not right."


class NotSignedIn(DomainError):
    code = "NotSignedIn"
    default_message = "Please sign in again."


class CardDeclined(DomainError):
    """The gateway declined the card. Nothing was charged."""

    code = "CardDeclined"
    default_message = "The card was declined. You were not charged."

    def __init__(
        self, message: str = "", *, details: tuple[str, ...] = (), is_new: bool = True
    ) -> None:
        super().__init__(message, details=details)
        # False if an earlier answer was about this attempt, or there was none: it does not count.
        self.is_new = is_new


class NotFound(DomainError):
    """The row does not exist, or it belongs to somebody else: the answer is the same for both."""

    code = "NotFound"
    default_message = "Not found."


class SlotUnavailable(DomainError):
    """The room cannot be booked. `staff_texts` are all reasons, for staff."""

    code = "SlotUnavailable"
    default_message = "The room is not available at that time."

    def __init__(self, message: str = "", *, staff_texts: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.staff_texts = staff_texts or (self.message,)


class ReservationNotOpen(DomainError):
    """The status of the reservation does not allow this change."""

    code = "ReservationNotOpen"
    default_message = "This reservation can no longer be changed."


class PromoCodeInvalid(DomainError):
    code = "PromoCodeInvalid"
    default_message = "This promo code cannot be used for this booking."


class AllowanceExhausted(DomainError):
    code = "AllowanceExhausted"
    default_message = "The included hours of this booking were used elsewhere in the meantime."


class NoSavedCard(DomainError):
    code = "NoSavedCard"
    default_message = "There is no saved card that can be used. Please enter a card."


class PaymentSetupNotComplete(DomainError):
    """The customer has not entered the card, or not confirmed it at the bank."""

    code = "PaymentSetupNotComplete"
    default_message = "The card has not been entered yet. Please finish that first."


class ReceiptNotAvailable(DomainError):
    code = "ReceiptNotAvailable"
    default_message = "Nothing was paid for this reservation, so there is no receipt."


class RateNotConfigured(DomainError):
    """The room has no price. It is never free because somebody forgot to enter one."""

    code = "RateNotConfigured"
    default_message = "This room has no price yet. Please ask the center."


class IdempotencyKeyReused(DomainError):
    code = "IdempotencyKeyReused"
    default_message = "This request was already sent with other contents. Please start again."


class AccountInUse(DomainError):
    """The account cannot be erased yet, or not at all; the message says why."""

    code = "AccountInUse"
    default_message = "The account cannot be deleted while it is in use."


class TooManyRequests(DomainError):
    code = "TooManyRequests"
    default_message = "Too many attempts. Please wait a little and try again."

    def __init__(self, message: str = "", *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ServiceUnavailable(DomainError):
    """The database or the gateway cannot be reached. The message says whether money moved."""

    code = "ServiceUnavailable"
    default_message = "The service cannot be reached right now. Please try again."
    retry_after = 2
