"""What only the rules of an operation refuse: fields that do not fit together, and their messages.

Types and bounds of single fields are in tests/test_wrong_values.py. No message repeats a value.
"""

import pytest

from accounts.models import OutboxMessage
from payments.models import Payment, SavedCard
from reservations.models import Reservation
from tests.factories_centers import MeetingRoomFactory, ServiceFactory
from tests.http import post
from tests.world import OPERATIONS_BY_NAME, PAYMENT_INFO

CARD_NUMBER = "4242 4242 4242 4242"
NEEDS_CARD = "PaymentInfo: A card is needed, here or by UseSavedPaymentInfo."
NOT_A_NAME = "This looks like a card number, not a name."


def with_card(**fields):
    return {"PaymentInfo": {**PAYMENT_INFO, **fields}}


TABLE = {
    "Update account info": [
        (
            {"NewFirstName": "", "NewLastName": " "},
            "NewFirstName: A name is needed.\nNewLastName: A name is needed.",
        ),
        *(
            ({name: CARD_NUMBER}, f"{name}: {NOT_A_NAME}")
            for name in ("NewFirstName", "NewLastName", "NewCompanyName")
        ),
        (
            {"NewPhoneNumber": "+378282246310005"},
            "NewPhoneNumber: This looks like a card number, not a telephone.",
        ),
    ],
    # What else a card needs is in tests/payments/test_cards.py.
    "Update payment info": [
        (
            with_card(SecurityCode="1234"),
            "PaymentInfo.SecurityCode: The security code has 3 digits.",
        ),
        (
            with_card(ExpirationDate="2078-01-01T00:00:00Z"),
            "PaymentInfo.ExpirationDate: No card is valid for so long.",
        ),
        (
            with_card(CreditCardNumber="４２" * 8),  # noqa: RUF001 (full-width digits)
            "PaymentInfo.CreditCardNumber: This is not a valid card number.",
        ),
        (
            with_card(CreditCardNumber="0" * 16),
            "PaymentInfo.CreditCardNumber: Cards of this kind are not accepted.",
        ),
        (
            with_card(BillingAddress={"Street1": CARD_NUMBER}),
            "PaymentInfo.BillingAddress.Street1: This looks like a card number.",
        ),
        (
            with_card(CreditCardNumber="378282246310005"),
            "PaymentInfo.SecurityCode: The security code has 4 digits.",
        ),
        (
            {"PaymentInfo": {}},
            "PaymentInfo.FirstName: The cardholder's name is needed.\n"
            "PaymentInfo.LastName: The cardholder's name is needed.\n"
            "PaymentInfo.CreditCardNumber: A card number is needed.\n"
            "PaymentInfo.ExpirationDate: The date of expiry is needed.",
        ),
    ],
    "Change password": [
        ({"ConfirmNewPassword": "x"}, "ConfirmNewPassword: The two new passwords differ."),
        (
            dict.fromkeys(("NewPassword", "ConfirmNewPassword"), "quiet-harbour-42"),
            "NewPassword: The new password must differ from the current one.",
        ),
        (
            dict.fromkeys(("NewPassword", "ConfirmNewPassword"), "Lovelace1"),
            "NewPassword: The password is too similar to the last name.",
        ),
    ],
    "Search locations": [
        ({"Longitude": None}, "Longitude: Latitude and Longitude come together."),
        (
            {"Query": " ".join(map(str, range(10, 41)))},
            "Query: A query has at most 30 words.",
        ),
        (
            {"Filters": {"CapacityLow": 5, "CapacityHigh": 4}},
            "Filters.CapacityLow: This is above CapacityHigh.",
        ),
    ],
    "City centers": [
        ({"Area": " ", "CityName": ""}, "Area: Area or CityName is needed."),
    ],
    "Create reservation": [
        ({"EndDate": "2027-04-05T09:00:00"}, "EndDate: The end must be after the start."),
        ({"NumberOfAttendees": 1}, "NumberOfAttendees: Fewer than the attendees listed."),
        ({"NumberOfAttendees": 9}, "NumberOfAttendees: The room holds 8 people."),
        (
            {"Attendees": [{"Name": "Joan", "CompanyName": CARD_NUMBER}]},
            f"Attendees.0.CompanyName: {NOT_A_NAME}",
        ),
        (
            {"Attendees": [{"CompanyName": "Navy"}]},
            "Attendees.0: A name or an e-mail address is needed.",
        ),
        (
            {"Attendees": [{"EmailAddress": "4242424242424242"}]},
            "Attendees.0.EmailAddress: This is not an e-mail address.",
        ),
        (
            {"Attendees": [{"EmailAddress": "ada.4242-4242-4242-4242@example.com"}]},
            "Attendees.0.EmailAddress: This looks like a card number, not an e-mail address.",
        ),
    ],
    "List free times": [
        *(
            (fields, "CenterId: Either CenterId or RoomIds is required.")
            for fields in ({"RoomIds": None}, {"CenterId": 1})
        ),
        ({"RoomIds": []}, "RoomIds: At least one room is required."),
        ({"RoomIds": [7, 7]}, "RoomIds: Each room can be listed once."),
        ({"To": "2027-04-05T09:00:00"}, "To: To must be after From."),
    ],
    "List prices": [
        ({"To": "2027-04-05T09:00:00"}, "To: To must be after From."),
        ({"To": "2027-08-05T09:00:00"}, "To: At most 31 days after From."),
    ],
    "Checkout": [
        *(({"PaymentInfo": None, "TestMode": test}, NEEDS_CARD) for test in (False, True)),
        (
            {"UseSavedPaymentInfo": True},
            "PaymentInfo: Must be left out when the saved card is to be used.",
        ),
    ],
    "List reservations": [
        (
            {"From": "2027-03-03T00:00:01Z", "To": "2027-03-03T00:00:00Z"},
            "To: To must not be before From.",
        ),
    ],
    "Create account": [
        ({"EmailAddress": "grace"}, "EmailAddress: Enter a valid email address."),
        ({"LastName": CARD_NUMBER}, f"LastName: {NOT_A_NAME}"),
        ({"Password": "babbage-1"}, "Password: The password is too similar to the last name."),
    ],
    "Request password reset": [
        ({"EmailAddress": "ada"}, "EmailAddress: Enter a valid email address."),
    ],
    "Change email": [
        ({"NewEmailAddress": "augusta"}, "NewEmailAddress: Enter a valid email address."),
        (
            {"NewEmailAddress": "ADA@example.com"},
            "NewEmailAddress: This is the address of your account already.",
        ),
    ],
}
ROWS = [
    pytest.param(name, fields, details, id=f"{name} {number}")
    for name, rows in TABLE.items()
    for number, (fields, details) in enumerate(rows)
]


@pytest.fixture
def world(world_copy, settings):
    settings.SIGN_UP = "open"
    return world_copy


def count_rows():
    models = (Reservation, Payment, SavedCard, OutboxMessage)
    return [each.objects.count() for each in models]


@pytest.mark.parametrize(("name", "fields", "details"), ROWS)
def test_fields_that_do_not_fit_are_named_and_nothing_is_written(world, name, fields, details):
    operation = OPERATIONS_BY_NAME[name]
    body = world.with_token(operation, {**world.body(operation), **fields})
    before = count_rows()

    response = post(world.client, operation.path, body)

    assert response.status_code == 400
    assert response.json() == {
        "Success": False,
        "Error": {
            "Summary": "InvalidRequest",
            "Message": "The request is not valid.",
            "Details": details,
        },
    }
    assert count_rows() == before
    assert "4242" not in response.content.decode()


@pytest.mark.parametrize(
    ("capacity", "reason"),
    [
        (1, "The room holds 1 people, and 2 are expected."),
        (8, "That center does not offer what was booked: Lunch."),
    ],
)
def test_change_into_a_room_that_does_not_fit_names_the_field_of_the_room(world, capacity, reason):
    center = {"center": world.center} if capacity == 1 else {}
    room = MeetingRoomFactory(capacity=capacity, **center)
    kept = dict.fromkeys(("ServiceOptions", "NumberOfAttendees", "Attendees"))
    Reservation.objects.filter(pk=world.paid.pk).update(number_of_attendees=2)
    world.paid.chosen_services.create(service=ServiceFactory(center=world.center, name="Lunch"))
    for name in ("Preview change", "Change reservation"):
        error = world.call(name, **kept, MeetingRoomId=room.pk).json()["Error"]
        assert error["Details"] == f"MeetingRoomId: {reason}", name
