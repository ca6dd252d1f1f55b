"""POST /api/account/update-info"""

import pytest

from tests.factories_people import SavedCardFactory, UserFactory, issue_token
from tests.http import jsonp, post, post_csv, table

pytestmark = pytest.mark.django_db

PATH = "/api/account/update-info"


@pytest.fixture
def ada():
    return UserFactory(
        email="ada@example.com", company_name="Engines Ltd", phone_number="+1 303 555 0100"
    )


@pytest.fixture
def update(client, ada):
    token = issue_token(ada)
    return lambda **fields: post(client, PATH, {"Token": token, **fields})


def test_update_info_changes_every_field(update, ada):
    response = update(
        NewFirstName="Augusta",
        NewLastName="King",
        NewCompanyName="Analytical",
        NewPhoneNumber="+44 20 7946 0958",
    )

    assert response.status_code == 200
    assert response.json() == {
        "Success": True,
        "UpdatedUserInfo": {
            "Id": ada.pk,
            "Type": "Account",
            "FirstName": "Augusta",
            "LastName": "King",
            "EmailAddress": "ada@example.com",
            "CompanyName": "Analytical",
            "PhoneNumber": "+44 20 7946 0958",
        },
    }
    ada.refresh_from_db()
    assert (ada.first_name, ada.last_name) == ("Augusta", "King")
    assert (ada.company_name, ada.phone_number) == ("Analytical", "+44 20 7946 0958")


def test_update_info_accepts_and_answers_csv(client, ada):
    row = {"Token": issue_token(ada), "NewFirstName": "Augusta", "NewLastName": ""}
    response = post_csv(client, PATH + ".csv", row)

    assert table(response) == [
        [
            "Success",
            "UpdatedUserInfo.Id",
            "UpdatedUserInfo.Type",
            "UpdatedUserInfo.FirstName",
            "UpdatedUserInfo.LastName",
            "UpdatedUserInfo.EmailAddress",
            "UpdatedUserInfo.CompanyName",
            "UpdatedUserInfo.PhoneNumber",
        ],
        [
            "true",
            str(ada.pk),
            "Account",
            "Augusta",
            "Lovelace",
            "ada@example.com",
            "Engines Ltd",
            "'+1 303 555 0100",
        ],
    ]


def test_update_info_answers_jsonp(client, ada):
    response = post(client, PATH + "?callback=go", {"Token": issue_token(ada)})

    assert jsonp(response, "go")["UpdatedUserInfo"]["FirstName"] == "Ada"


def test_absent_and_null_fields_are_unchanged(update, ada):
    body = update(NewFirstName="Augusta", NewCompanyName=None).json()

    assert body["UpdatedUserInfo"]["FirstName"] == "Augusta"
    assert body["UpdatedUserInfo"]["LastName"] == "Lovelace"
    assert body["UpdatedUserInfo"]["CompanyName"] == "Engines Ltd"


def test_empty_text_clears_company_and_phone_number(update, ada):
    body = update(NewCompanyName="", NewPhoneNumber="  ").json()

    assert "CompanyName" not in body["UpdatedUserInfo"]
    assert "PhoneNumber" not in body["UpdatedUserInfo"]
    ada.refresh_from_db()
    assert (ada.company_name, ada.phone_number) == ("", "")


def test_empty_name_is_refused_and_nothing_changes(update, ada):
    response = update(NewFirstName="", NewLastName=" ", NewCompanyName="Analytical")

    assert response.status_code == 400
    assert response.json() == {
        "Success": False,
        "Error": {
            "Summary": "InvalidRequest",
            "Message": "The request is not valid.",
            "Details": "NewFirstName: A name is needed.\nNewLastName: A name is needed.",
        },
    }
    ada.refresh_from_db()
    assert ada.company_name == "Engines Ltd"


def test_surrounding_space_is_trimmed(update):
    assert update(NewLastName="  King ").json()["UpdatedUserInfo"]["LastName"] == "King"


@pytest.mark.parametrize(
    "field", ["NewFirstName", "NewLastName", "NewCompanyName", "NewPhoneNumber"]
)
def test_card_number_as_name_is_refused_without_echo(update, ada, field):
    response = update(**{field: "4242 4242 4242 4242"})

    assert response.status_code == 400
    assert response.json()["Error"]["Details"].startswith(f"{field}: This looks like a card")
    assert "4242" not in response.content.decode()


def test_phone_number_with_a_plus_and_a_card_number_is_refused(update, ada):
    response = update(NewPhoneNumber="+378282246310005")

    assert response.status_code == 400
    assert response.json()["Error"]["Details"] == (
        "NewPhoneNumber: This looks like a card number, not a telephone."
    )
    assert update(NewPhoneNumber="+4222222222222").status_code == 200


def test_unknown_fields_are_ignored(update, ada):
    response = update(EmailAddress="evil@example.com", IsStaff=True, Type="Administrator", Id=1)

    assert response.status_code == 200
    ada.refresh_from_db()
    assert (ada.email, ada.is_staff, ada.is_superuser) == ("ada@example.com", False, False)


@pytest.mark.parametrize(
    ("fields", "details"),
    [
        ({"NewFirstName": "x" * 256}, "NewFirstName: Must have at most 255 characters."),
        ({"NewPhoneNumber": "1" * 51}, "NewPhoneNumber: Must have at most 50 characters."),
        ({"NewLastName": 12}, "NewLastName: Must be text."),
        ({"NewLastName": ["King"]}, "NewLastName: Must be text."),
        (
            {"NewLastName": "K\0ng"},
            "NewLastName: Must not hold a NUL character or half of a surrogate pair.",
        ),
    ],
)
def test_update_info_names_invalid_fields(update, fields, details):
    response = update(**fields)

    assert response.status_code == 400
    assert response.json()["Error"]["Details"] == details


def test_update_info_returns_saved_card_and_thumbnail(update, ada, settings):
    settings.PUBLIC_URL = "https://rooms.example.com"
    SavedCardFactory(user=ada)
    ada.thumbnail = "accounts/ada.jpg"
    ada.save()

    shown = update().json()["UpdatedUserInfo"]
    assert shown["SavedPaymentInfo"]["Last4DigitsOfCreditCardNumber"] == "4242"
    assert shown["ThumbnailUrl"] == "https://rooms.example.com/media/accounts/ada.jpg"


def test_thumbnail_url_uses_request_host_without_public_url(update, ada):
    ada.thumbnail = "accounts/ada.jpg"
    ada.save()

    shown = update().json()["UpdatedUserInfo"]
    assert shown["ThumbnailUrl"] == "http://testserver/media/accounts/ada.jpg"


def test_update_info_query_count_is_constant(update, django_assert_num_queries):
    # Token with account, update and its line of history within a savepoint, card.
    with django_assert_num_queries(6):
        update(NewLastName="King")
