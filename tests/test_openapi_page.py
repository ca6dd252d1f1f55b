"""The page /docs and the OpenAPI description that it shows."""

import datetime as dt
import json
from pathlib import Path

import pytest
import time_machine

from roombook.api.operations import EXAMPLE_DAY
from roombook.api.views import choose_day
from roombook.settings import BASE_DIR
from tests.world import NOW


@pytest.mark.parametrize("name", ["openapi.json", "openapi-3.0.json"])
def test_served_description_is_the_file_with_bookings_in_the_future(client, name):
    text = (Path(BASE_DIR) / "docs" / name).read_text()

    with time_machine.travel(NOW, tick=False):
        response = client.get(f"/{name}")
        again = client.get(f"/{name}", headers={"If-None-Match": response["ETag"]})

    assert response["Content-Type"] == "application/json"
    assert text.count(EXAMPLE_DAY) > 5
    assert response.json() == json.loads(text.replace(EXAMPLE_DAY, "2027-04-05"))
    assert again.status_code == 304
    assert client.post(f"/{name}").status_code == 405


@pytest.mark.parametrize(
    ("today", "expected"),
    [
        (dt.date(2026, 11, 23), dt.date(2026, 12, 28)),
        (dt.date(2026, 11, 29), dt.date(2026, 12, 28)),
        (dt.date(2028, 11, 22), dt.date(2028, 12, 26)),  # Monday is Christmas Day.
    ],
)
def test_examples_are_bookings_on_a_working_day_about_a_month_ahead(today, expected):
    assert choose_day(today) == expected
