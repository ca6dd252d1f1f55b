"""What can go wrong in the business, each with its stable code; no HTTP here: api/exceptions.py."""

from collections.abc import Mapping


class DomainError(Exception):
    """Something a caller asked for cannot be had; `message` is fit to be read by the customer.

    `code` is the stable name that programs see; `details` are lines for the engineer.
    """

    code = "InternalError"
    default_message = "Something went wrong."
    retry_after: int | None = None

    def __init__(self, message: str = "", *, details: tuple[str, ...] = ()) -> None:
        self.message = message or self.default_message
        self.details = details
        super().__init__(self.message)


class InvalidRequest(DomainError):
    """Fields are missing, of the wrong kind or out of bounds.

    `fields` maps attribute paths (`payment_info.first_name`, `service_options.2.quantity`) to
    reasons; the API shows each path by its contract name.
    """

    code = "InvalidRequest"
    default_message = "The request is not valid."

    def __init__(self, fields: Mapping[str, str] | None = None, message: str = "") -> None:
        self.fields = dict(fields or {})
        super().__init__(message)


class InvalidCredentials(DomainError):
    code = "InvalidCredentials"
    default_message = "The e-mail address or the password is not right."


class NotSignedIn(DomainError):
    code = "NotSignedIn"
    default_message = "Please sign in again."


class CardDeclined(DomainError):
    """The gateway refused the card; nothing was charged."""

    code = "CardDeclined"
    default_message = "The card was declined. You were not charged."


class NotFound(DomainError):
    """No such row, or somebody else's: the very same answer for both."""

    code = "NotFound"
    default_message = "There is nothing here by that number."


class SlotUnavailable(DomainError):
    code = "SlotUnavailable"
    default_message = "The room is not available at that time."


class ReservationNotOpen(DomainError):
    """A change was asked of a reservation that can no longer take it."""

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


class RateNotConfigured(DomainError):
    """The room has no price: never free by omission."""

    code = "RateNotConfigured"
    default_message = "This room has no price yet. Please ask the center."


class TooManyRequests(DomainError):
    code = "TooManyRequests"
    default_message = "Too many tries. Please wait a little and try again."

    def __init__(self, message: str = "", *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ServiceUnavailable(DomainError):
    """The database or the gateway is out of reach; the message says what became of the money."""

    code = "ServiceUnavailable"
    default_message = "The service cannot be reached right now. Please try again."
    retry_after = 2
