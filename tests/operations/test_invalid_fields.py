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
SPAN = [
    ({"EndDate": "2027-04-05T09:00:00"}, "EndDate: The end must be after the start."),
    ({"EndDate": "2027-05-30T09:00:00"}, "EndDate: At most 31 days after the start."),
    (
        {"StartDate": "2027-03-14T02:30:00", "EndDate": "2027-03-14T04:00:00"},
        "StartDate: The clock skips this time at the center.",
    ),
]


def with_card(**fields):
    return {"PaymentInfo": {**PAYMENT_INFO, **fields}}


CARDS = [
    ({"CreditCardNumber": ""}, "CreditCardNumber: A card number is needed."),
    ({"CreditCardNumber": None}, "CreditCardNumber: A card number is needed."),
    (
        {"CreditCardNumber": "4242424242424241"},
        "CreditCardNumber: This is not a valid card number.",
    ),
    ({"CreditCardNumber": "4242"}, "CreditCardNumber: This is not a valid card number."),
    (
        {"CreditCardNumber": "４２４２424242424242"},  # noqa: RUF001 (full-width digits)
        "CreditCardNumber: This is not a valid card number.",
    ),
    (
        {"CreditCardNumber": "0000000000000000"},
        "CreditCardNumber: Cards of this kind are not accepted.",
    ),
    ({"SecurityCode": "12"}, "SecurityCode: The security code has 3 digits."),
    ({"SecurityCode": "1234"}, "SecurityCode: The security code has 3 digits."),
    ({"SecurityCode": "abc"}, "SecurityCode: The security code has 3 digits."),
    ({"CreditCardNumber": "378282246310005"}, "SecurityCode: The security code has 4 digits."),
    ({"ExpirationDate": None}, "ExpirationDate: The date of expiry is needed."),
    ({"ExpirationDate": "2027-02-28T23:59:59Z"}, "ExpirationDate: This card has expired."),
    ({"ExpirationDate": "2078-01-01T00:00:00Z"}, "ExpirationDate: No card is valid for so long."),
    ({"FirstName": " "}, "FirstName: The cardholder's name is needed."),
    ({"LastName": None}, "LastName: The cardholder's name is needed."),
    *(({name: CARD_NUMBER}, f"{name}: {NOT_A_NAME}") for name in ("FirstName", "CompanyName")),
    (
        {"BillingAddress": {"Street1": CARD_NUMBER}},
        "BillingAddress.Street1: This looks like a card number.",
    ),
]
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
        (
            {"NewLastName": "K\0ng"},
            "NewLastName: Must not hold a NUL character or half of a surrogate pair.",
        ),
    ],
    "Update payment info": [
        *((with_card(**fields), f"PaymentInfo.{details}") for fields, details in CARDS),
        (
            {"PaymentInfo": {}},
            "PaymentInfo.FirstName: The cardholder's name is needed.\n"
            "PaymentInfo.LastName: The cardholder's name is needed.\n"
            "PaymentInfo.CreditCardNumber: A card number is needed.\n"
            "PaymentInfo.ExpirationDate: The date of expiry is needed.",
        ),
    ],
    "Change password": [
        ({"CurrentPassword": "x"}, "CurrentPassword: This is not your current password."),
        ({"ConfirmNewPassword": "x"}, "ConfirmNewPassword: The two new passwords differ."),
        (
            dict.fromkeys(("NewPassword", "ConfirmNewPassword"), "quiet-harbour-42"),
            "NewPassword: The new password must differ from the current one.",
        ),
        (
            dict.fromkeys(("NewPassword", "ConfirmNewPassword"), "1234567"),
            "NewPassword: This password is too short. It must contain at least 8 characters."
            " This password is too common. This password is entirely numeric.",
        ),
        (
            dict.fromkeys(("NewPassword", "ConfirmNewPassword"), "Lovelace1"),
            "NewPassword: The password is too similar to the last name.",
        ),
    ],
    "Search locations": [
        ({"Longitude": None}, "Longitude: Latitude and Longitude come together."),
        ({"Latitude": None}, "Latitude: Latitude and Longitude come together."),
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
        ({"Area": None, "CityName": None}, "Area: Area or CityName is needed."),
        ({"Area": " ", "CityName": ""}, "Area: Area or CityName is needed."),
    ],
    "Check room availability": SPAN,
    "Reservation cost": [
        (
            {"ServiceOptions": [{"ServiceId": 1, "DurationHours": 0.125}]},
            "ServiceOptions.0.DurationHours: Must have at most 2 decimal places.",
        ),
    ],
    "Create reservation": [
        *SPAN,
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
        *(
            ({"UseSavedPaymentInfo": saved, "PaymentInfo": None, "TestMode": test}, NEEDS_CARD)
            for saved in (None, False)
            for test in (False, True)
        ),
        *(
            (
                {"UseSavedPaymentInfo": True, "TestMode": test},
                "PaymentInfo: Must be left out when the saved card is to be used.",
            )
            for test in (False, True)
        ),
        ({"PartnerCode": "NONESUCH"}, "PartnerCode: There is no such partner."),
    ],
    "List reservations": [
        (
            {"From": "2027-03-03T00:00:01Z", "To": "2027-03-03T00:00:00Z"},
            "To: To must not be before From.",
        ),
    ],
    "Delete account": [({"Password": "x"}, "Password: This is not your current password.")],
    "Create account": [
        ({"EmailAddress": "grace"}, "EmailAddress: Enter a valid email address."),
        (
            {"EmailAddress": "g@x.example\nBcc: e@x.example"},
            "EmailAddress: Enter a valid email address.",
        ),
        ({"LastName": CARD_NUMBER}, f"LastName: {NOT_A_NAME}"),
        ({"Password": "babbage-1"}, "Password: The password is too similar to the last name."),
    ],
    "Request password reset": [
        ({"EmailAddress": "ada"}, "EmailAddress: Enter a valid email address."),
    ],
    "Change email": [
        ({"Password": "wrong"}, "Password: This is not your current password."),
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


@pytest.mark.parametrize("name", ["Preview change", "Change reservation"])
@pytest.mark.parametrize(
    ("capacity", "reason"),
    [
        (1, "The room holds 1 people, and 2 are expected."),
        (8, "That center does not offer what was booked: Lunch."),
    ],
)
def test_change_into_a_room_that_does_not_fit_names_the_field_of_the_room(
    world, name, capacity, reason
):
    operation = OPERATIONS_BY_NAME[name]
    room = MeetingRoomFactory(capacity=capacity)
    if capacity == 1:
        room = MeetingRoomFactory(center=world.center, capacity=1)
    kept = dict.fromkeys(("ServiceOptions", "NumberOfAttendees", "Attendees"))
    body = {**world.body(operation), **kept, "MeetingRoomId": room.pk}
    Reservation.objects.filter(pk=body["ReservationId"]).update(number_of_attendees=2)
    booked = Reservation.objects.get(pk=body["ReservationId"])
    service = ServiceFactory(center=booked.room.center, name="Lunch")
    booked.chosen_services.create(service=service)

    response = post(world.client, operation.path, world.with_token(operation, body))

    assert response.json()["Error"]["Details"] == f"MeetingRoomId: {reason}"
