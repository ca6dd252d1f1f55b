"""Ways of payment that no gateway knows: staff take the money, and return it (B26).

A payment in one of these ways is captured as soon as it exists, so that nothing about it can be in
doubt. Its refund stays due until staff confirm that they have returned the money.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ManualGateway:
    """One way of payment, with the words for it in messages and on pages."""

    name: str
    label: str
    # Follow "$50.00 was" and "$50.00 is".
    charged: str
    refunded: str


CASH = ManualGateway("cash", "Cash", "paid in cash", "refunded in cash, at the center")
TERMINAL = ManualGateway(
    "terminal", "Card terminal", "paid at the card terminal", "refunded at the card terminal"
)
ACCOUNT = ManualGateway(
    "account", "On account", "charged to the account", "credited to the account"
)

MANUAL_GATEWAYS = {gateway.name: gateway for gateway in (CASH, TERMINAL, ACCOUNT)}
