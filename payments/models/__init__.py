"""Payments, refunds, disputes, saved cards and their setups."""

# Imported so that Django finds these models.
from payments.gateways.sandbox_models import (  # noqa: F401
    SandboxCard,
    SandboxPayment,
    SandboxRefund,
    SandboxSetup,
)
from payments.gateways.stripe_models import StripeCustomer, StripePayment  # noqa: F401
from payments.ledger.models import LedgerLine
from payments.models.cards import PaymentSetup, PaymentSetupState, SavedCard
from payments.models.gateway_reports import GatewayCheckpoint, GatewayEvent, UnknownPayment
from payments.models.payments import (
    OPEN_PAYMENT_STATES,
    TRANSITIONS,
    InvalidPaymentTransition,
    Payment,
    PaymentPurpose,
    PaymentState,
)
from payments.models.refunds import (
    COMPLETED_REFUND_STATES,
    LOST,
    Dispute,
    Refund,
    RefundState,
)

__all__ = [
    "COMPLETED_REFUND_STATES",
    "LOST",
    "OPEN_PAYMENT_STATES",
    "TRANSITIONS",
    "Dispute",
    "GatewayCheckpoint",
    "GatewayEvent",
    "InvalidPaymentTransition",
    "LedgerLine",
    "Payment",
    "PaymentPurpose",
    "PaymentSetup",
    "PaymentSetupState",
    "PaymentState",
    "Refund",
    "RefundState",
    "SavedCard",
    "UnknownPayment",
]
