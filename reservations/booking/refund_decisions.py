"""Staff who may override refunds choose what a cancellation refunds (B18).

The policy of the reservation is the default. Another amount needs a reason and the permission; it
is stored as a RefundOverride and in the history.
"""

from dataclasses import dataclass
from decimal import Decimal

from accounts import roles
from accounts.models import User
from centers.models import Center
from roombook import money
from roombook.errors import InvalidRequest

OVERRIDE_REFUND = "reservations.override_refund"


@dataclass(frozen=True, slots=True)
class RefundDecision:
    """The refund that a member of staff has chosen instead of the policy's, and the reason.

    The amount None is everything that is left of what was charged.
    """

    amount: Decimal | None
    reason: str


def get_override_refusal(user: User | None, center: Center) -> str:
    """Return why the user cannot refund another amount than the policy's; empty if they can."""
    if user is not None and roles.has_permission(user, OVERRIDE_REFUND, center.pk):
        return ""
    return f"Only who may override refunds at {center.name} can refund another amount."


def validate_refund(
    refund: Decimal, *, left: Decimal, reason: str, center: Center, by: User | None
) -> None:
    """Raise InvalidRequest unless the user may refund this amount of what is left to refund."""
    if refusal := get_override_refusal(by, center):
        raise InvalidRequest({"refund": refusal})
    if not 0 <= refund <= left:
        raise InvalidRequest(
            {"refund": f"Between 0 and {money.format_amount(left)} can be refunded."}
        )
    if money.round_amount(refund) != refund:
        raise InvalidRequest({"refund": "The amount has too many decimal places."})
    if not reason.strip():
        raise InvalidRequest({"reason": "A refund that the policy does not give needs a reason."})
