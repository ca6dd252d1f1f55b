"""Searches among thousands of centers use indexes. Tests compare plans, never times."""

from functools import partial

import pytest
from django.db import connection

from centers import search
from centers.geo import Coordinates
from centers.models import Center, MeetingRoom
from centers.search import SearchFilters
from tests import factories_centers as make
from tests.factories_people import UserFactory
from tests.test_plans import IS_POSTGRES, find_scans, get_plans
from tests.test_plans import without_prepared_statements as without_prepared_statements
from tests.test_plans import without_table_scans as without_table_scans

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("many_centers", "without_prepared_statements"),
]

CENTERS = 3000
DENVER = Coordinates(39.7392, -104.9903)


def create_many_centers():
    model = make.make_center_with_room(name="Model")
    rate, kind = model.rates.get(), model.rooms.get().resource_type
    parts = make.NeighborhoodFactory.create_batch(30)
    centers = []
    for number in range(CENTERS):
        center = make.CenterFactory.build(
            name=f"Center {number}",
            city=f"City {number % 97}",
            neighborhood=parts[number % len(parts)],
            latitude=number * 7919 % 17900 / 100 - 89.5,
            longitude=number * 104729 % 35900 / 100 - 179.5,
        )
        center.update_search_columns()
        centers.append(center)
    centers = Center.objects.bulk_create(centers)
    MeetingRoom.objects.bulk_create(
        MeetingRoom(center=center, name="Room", capacity=8, rate=rate, resource_type=kind)
        for center in centers
    )
    with connection.cursor() as cursor:
        if IS_POSTGRES:
            # Move new entries from the pending list into the index, as a vacuum does.
            cursor.execute("SELECT gin_clean_pending_list('center_search_text')")
        cursor.execute("ANALYZE")


@pytest.fixture(scope="module")
def many_centers(make_once):
    make_once(create_many_centers)


def test_location_search_uses_an_index():
    filters = SearchFilters(capacity_low=4, only_realtime=True)
    for search_fields, index in (
        ({}, "center_rank"),
        ({"filters": filters}, "center_rank"),
        ({"coordinates": DENVER, "radius_in_miles": 1}, "center_place"),
        ({"coordinates": DENVER}, "center_place"),
        ({"coordinates": DENVER, "radius_in_miles": 500}, "center_place"),
        ({"coordinates": Coordinates(-17.7, 179.9), "radius_in_miles": 500}, "center_place"),
        ({"coordinates": Coordinates(89.9, 10), "radius_in_miles": 500}, "center_place"),
        ({"coordinates": DENVER, "radius_in_miles": 25, "query": "center 12"}, "center_place"),
        ({"coordinates": DENVER, "filters": filters}, "center_place"),
    ):
        found = get_plans(partial(search.search_locations, UserFactory(), **search_fields))
        first = [plan for sql, plan in found if "squared_chord" in sql]

        assert first
        for plan in first:
            assert index in plan, plan
            assert "centers_center" not in find_scans(plan), plan


@pytest.mark.postgres
def test_word_search_uses_an_index(without_table_scans):
    found = get_plans(lambda: search.search_locations(UserFactory(), query="center 1234"))
    first = [plan for sql, plan in found if "squared_chord" in sql]
    matching = Center.objects.containing_words(["1234"]).explain()

    assert len(first) == 2  # centers whose name matches, and all others
    assert not [table for plan in first for table in find_scans(plan)]
    assert "center_search_text" in matching


@pytest.mark.parametrize(
    ("search_fields", "index"),
    [
        ({"coordinates": DENVER, "radius_in_miles": 500}, "center_place"),
        pytest.param({"query": "1234"}, "center_search_text", marks=pytest.mark.postgres),
    ],
)
def test_filter_options_of_many_centers_use_an_index(
    without_table_scans, settings, search_fields, index
):
    settings.SEARCH_MAX_RESULTS = 1
    found = get_plans(lambda: search.search_locations(UserFactory(), **search_fields))
    options = [plan for sql, plan in found if "FROM centers_neighborhood" in sql.replace('"', "")]

    assert [index in plan for plan in options] == [True], options
    for sql, plan in found:
        assert not {"centers_center", "centers_meetingroom"} & {*find_scans(plan)}, f"{sql}\n{plan}"
