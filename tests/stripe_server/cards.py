"""Stripe's documented test numbers, and what charging each of them does."""

# Charging these is declined with (code, decline code).
DECLINES = {
    "4000000000000002": ("card_declined", "generic_decline"),
    "4000000000009995": ("card_declined", "insufficient_funds"),
    "4000000000009987": ("card_declined", "lost_card"),
    "4000000000009979": ("card_declined", "stolen_card"),
    "4000000000000069": ("expired_card", None),
    "4000000000000127": ("incorrect_cvc", None),
    "4000000000000119": ("processing_error", None),
    "4000000000006975": ("card_declined", "card_velocity_exceeded"),
    "4100000000000019": ("card_declined", "fraudulent"),
}
# These can be attached to a Customer, and are declined when they are charged.
DECLINES_WHEN_CHARGED = {"4000000000000341": ("card_declined", "generic_decline")}
REQUIRES_ACTION = {"4000002500003155", "4000002760003184"}
BRANDS = {
    **dict.fromkeys(("4242424242424242", "4000056655665556"), "visa"),
    **dict.fromkeys(("5555555555554444", "2223003122003222", "5105105105105100"), "mastercard"),
    **dict.fromkeys(("378282246310005", "371449635398431"), "amex"),
    "6011111111111117": "discover",
    "3056930009020004": "diners",
    "3566002020360505": "jcb",
    "6200000000000005": "unionpay",
}


def get_outcome(number: str, *, is_live: bool) -> str:
    """What charging the number does, in words without the number: `good`, `action`, or
    `code/decline code`, with `late/` before it if the card can be attached all the same.
    """
    is_test = number in {*BRANDS, *DECLINES, *DECLINES_WHEN_CHARGED, *REQUIRES_ACTION}
    if is_test == is_live:
        mode = "live_mode_test_card" if is_test else "test_mode_live_card"
        return f"card_declined/{mode}"
    if number in REQUIRES_ACTION:
        return "action"
    code, decline_code = DECLINES.get(number) or DECLINES_WHEN_CHARGED.get(number) or ("", "")
    late = "late/" if number in DECLINES_WHEN_CHARGED else ""
    return f"{late}{code}/{decline_code or ''}" if code else "good"


def split_outcome(outcome: str) -> tuple[str, str | None]:
    """The code and the decline code of an outcome."""
    code, decline_code = outcome.removeprefix("late/").split("/")
    return code, decline_code or None
