"""Messages for customers whose card was declined, the same for every gateway.

Each message says that nothing was charged: that is what customers want to know first.
"""

DECLINED = "The card was declined. You were not charged."
INSUFFICIENT_FUNDS = "The card has insufficient funds. You were not charged."
EXPIRED = "The card has expired. You were not charged."
WRONG_NUMBER = "The card's number is incorrect. You were not charged."
WRONG_SECURITY_CODE = "The card's security code is incorrect. You were not charged."
WRONG_EXPIRY = "The card's date of expiry is incorrect. You were not charged."
WRONG_ADDRESS = "The card's billing address is incorrect. You were not charged."
NOT_SUPPORTED = (
    "The card does not support this kind of purchase. You were not charged."
    " Please use another card."
)
PROCESSING_ERROR = (
    "An error occurred while processing the card. You were not charged. Please try again."
)
OVER_LIMIT = "The card is over its limit. You were not charged."
REQUIRES_ACTION = (
    "The card's bank asks for a confirmation that cannot be given here."
    " You were not charged. Please save the card in the app, which lets you confirm it at the bank,"
    " and pay with the saved card; or use another card."
)
NOT_CONFIRMED = (
    "The card was not confirmed at its bank. You were not charged."
    " Please try again, or use another card."
)
UNKNOWN_CARD = "This saved card is no longer known. You were not charged."
NOT_A_TEST_CARD = (
    "This is a test: it takes only test cards, such as 4242 4242 4242 4242. You were not charged."
)
IS_A_TEST_CARD = "This is a test card. You were not charged. Please use a real one."
AMOUNT_OUT_OF_BOUNDS = "This amount cannot be charged to a card. You were not charged."
