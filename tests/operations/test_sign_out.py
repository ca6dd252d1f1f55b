"""POST /api/sign-out"""

import pytest

from tests.factories_people import UserFactory, issue_token
from tests.http import jsonp, post, post_csv, table

pytestmark = pytest.mark.django_db

PATH = "/api/sign-out"


def test_sign_out_deletes_only_this_token(client):
    ada = UserFactory()
    here, there = issue_token(ada), issue_token(ada)

    response = post(client, PATH, {"Token": here})

    assert response.status_code == 200
    assert response.json() == {"Success": True}
    assert post(client, PATH, {"Token": here}).status_code == 401
    assert post(client, PATH, {"Token": there}).status_code == 200


def test_sign_out_answers_csv_and_jsonp(client):
    ada = UserFactory()

    answer = post_csv(client, PATH + ".csv", {"Token": issue_token(ada)})
    assert table(answer) == [["Success"], ["true"]]
    wrapped = post(client, PATH + "?callback=go", {"Token": issue_token(ada)})
    assert jsonp(wrapped, "go") == {"Success": True}
