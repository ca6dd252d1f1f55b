"""POST /api/account/update-favorite"""

import pytest

from centers.models import Favorite
from tests.factories_centers import CenterFactory, FavoriteFactory, make_center_with_room
from tests.factories_people import UserFactory, issue_token
from tests.http import jsonp, post, post_csv, table

pytestmark = pytest.mark.django_db

PATH = "/api/account/update-favorite"


@pytest.fixture
def call(client, ada):
    token = issue_token(ada)
    return lambda **fields: post(client, PATH, {"Token": token, **fields})


def test_update_favorite_adds_the_center(call, ada):
    center = make_center_with_room(name="Glenarm", street2="Floor 2", promo_text="First hour free")

    response = call(CenterId=center.pk, IsFavorite=True)

    assert response.status_code == 200
    assert response.json() == {
        "Success": True,
        "UpdatedCenter": {
            "Id": center.pk,
            "Name": "Glenarm",
            "Address": {
                "Street1": "1600 Glenarm Place",
                "Street2": "Floor 2",
                "City": "Denver",
                "State": "CO",
                "PostalCode": "80202",
                "Country": "US",
                "Latitude": 39.7433,
                "Longitude": -104.9903,
                "TimeZoneId": "America/Denver",
                "HasStreet2": True,
                "CityStatePostalCode": "Denver, CO 80202",
            },
            "CenterHours": [
                {"Value": "Mo-Su 08:00-18:00", "DisplayValue": "Mon-Sun 8:00 AM - 6:00 PM"}
            ],
            "CenterHoursConcatenated": "Mon-Sun 8:00 AM - 6:00 PM",
            "LowestRate": "$25.00/hour",
            "PromoText": "First hour free",
            "IsFavorite": True,
            "IsLiveInventory": True,
            "IsAfterHoursSupportEnabled": False,
            "IsNotFavorite": False,
        },
    }
    assert list(ada.favorites.values_list("center", flat=True)) == [center.pk]


def test_update_favorite_removes_the_center(call, ada):
    center = CenterFactory()
    FavoriteFactory(user=ada, center=center)
    somebody_elses = FavoriteFactory(user=UserFactory(), center=center)

    body = call(CenterId=center.pk, IsFavorite=False).json()

    assert body["UpdatedCenter"]["IsFavorite"] is False
    assert body["UpdatedCenter"]["IsNotFavorite"] is True
    assert list(Favorite.objects.all()) == [somebody_elses]


@pytest.mark.parametrize("is_favorite", [True, False])
def test_update_favorite_twice_changes_nothing(call, is_favorite):
    center = CenterFactory()
    for _ in range(2):
        response = call(CenterId=center.pk, IsFavorite=is_favorite)
        assert response.status_code == 200
    assert Favorite.objects.count() == int(is_favorite)


def test_update_favorite_supports_csv_and_jsonp(client, ada):
    center, token = make_center_with_room(name="Glenarm"), issue_token(ada)
    row = {"Token": token, "CenterId": center.pk, "IsFavorite": "TRUE"}

    header, line = table(post_csv(client, f"{PATH}.csv", row))
    cells = dict(zip(header, line, strict=True))
    assert cells["Success"] == "true"
    assert cells["UpdatedCenter.Id"] == str(center.pk)
    assert cells["UpdatedCenter.IsFavorite"] == "true"
    assert cells["UpdatedCenter.CenterHours.0.Value"] == "Mo-Su 08:00-18:00"

    fields = {"Token": token, "CenterId": center.pk, "IsFavorite": False}
    body = jsonp(post(client, f"{PATH}?callback=app.done", fields), "app.done")
    assert body["UpdatedCenter"]["IsFavorite"] is False


@pytest.mark.parametrize(
    ("fields", "details"),
    [
        ({"CenterId": 1}, "IsFavorite: Required."),
        ({"IsFavorite": True}, "CenterId: Required."),
        ({"CenterId": 1, "IsFavorite": None}, "IsFavorite: Required."),
        ({"CenterId": 1, "IsFavorite": "true"}, "IsFavorite: Must be true or false."),
        ({"CenterId": 0, "IsFavorite": True}, "CenterId: Must be at least 1."),
        ({"CenterId": 2**31, "IsFavorite": True}, f"CenterId: Must be at most {2**31 - 1}."),
    ],
)
def test_invalid_fields_are_rejected_by_name(call, fields, details):
    response = call(**fields)
    assert response.status_code == 400
    assert response.json()["Error"]["Summary"] == "InvalidRequest"
    assert response.json()["Error"]["Details"] == details


def test_unknown_or_inactive_center_is_not_found(call):
    inactive = CenterFactory(is_active=False)
    bodies = [call(CenterId=pk, IsFavorite=True) for pk in (inactive.pk, inactive.pk + 1)]
    assert [response.status_code for response in bodies] == [404, 404]
    assert bodies[0].json() == bodies[1].json()


def test_request_without_token_is_rejected(client):
    response = post(client, PATH, {"CenterId": 1, "IsFavorite": True})
    assert response.status_code == 401
