"""Fields are strict, names are the contract's, and what has no value is left out."""

import contextlib
import datetime as dt
from decimal import Decimal
from types import SimpleNamespace

import pytest
from django.core.exceptions import ObjectDoesNotExist
from django.db import models
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import ValidationError

from roombook.api.csv_table import CSVCell
from roombook.api.serializers import (
    BooleanField,
    CenterDateTimeField,
    ChoiceField,
    ContractField,
    ContractSerializer,
    DateTimeField,
    DecimalField,
    DoubleField,
    IdField,
    IntegerField,
    ListField,
    TextField,
    UrlField,
)
from tests.api.urls import AllFields, Thing

UTC = dt.UTC
local = dt.datetime.fromisoformat
DENVER = dt.timezone(dt.timedelta(hours=-7))

FIELDS = {
    "text": TextField(),
    "id": IdField(),
    "count": IntegerField(),
    "bounded": IntegerField(min_value=1, max_value=500),
    "flag": BooleanField(),
    "double": DoubleField(),
    "latitude": DoubleField(min_value=-90, max_value=90),
    "amount": DecimalField(),
    "hours": DecimalField(min_value=0, max_value=24, decimal_places=1),
    "kind": ChoiceField(["Account", "Staff"]),
    "at": CenterDateTimeField(),
    "moment": DateTimeField(),
    "ids": ListField(IdField()),
    "item": Thing(),
    "items": Thing(many=True),
}
NOT_TEXT = [True, False, 0, 1.5, [], {}, ["a"]]
NOT_NUMBER = [True, False, "", " ", "12", "abc", [], {}, [1], {"a": 1}]
NOT_MOMENT = [
    True, 0, 1767225600, "", "now", "2027-03-01T09", "2027-03-01T9:00:00", "20270301T090000",
    "2027-W09-1T09:00:00", "2027-02-30T09:00:00", "2027-03-01T24:00:00", "2027-03-01T09:00:60",
    "2027-03-01T09:00:00 -07:00", "2027-03-01T09:00:00+24:00", "2027-03-01T09:00:00+07:60",
    "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "٢٠٢٧-03-01T09:00:00", "03/01/2027",
    "2027-03-01T09:00:00Zulu", "2027-03-01T09:00:00,5", ["2027-03-01T09:00:00"], {},
]  # fmt: skip

WRONG = [
    *[("text", value) for value in [*NOT_TEXT, "\0", "a\0b", "\ud800", "\udfff x", "x" * 256]],
    *[("id", value) for value in [*NOT_NUMBER, 0, -1, 2**31, 2**63, 1.0, 1.5, 10**400]],
    *[("count", value) for value in [*NOT_NUMBER, 1.0, 2**31, -(2**31) - 1]],
    *[("bounded", value) for value in [0, 501]],
    *[("flag", value) for value in [0, 1, "true", "yes", "", [], {}]],
    *[("double", value) for value in [*NOT_NUMBER, float("nan"), float("inf"), 10**400]],
    *[("latitude", value) for value in [90.1, -91]],
    *[("amount", value) for value in [*NOT_NUMBER, 0.001, 1e-300, 1e300, float("inf"), 10**20]],
    *[("amount", value) for value in [float("nan"), -(10**10), 10**400]],
    *[("hours", value) for value in [-0.5, 24.5, 0.25]],
    *[("kind", value) for value in ["account", "", "Other", 1, True, [], {}]],
    *[("at", value) for value in [*NOT_MOMENT, "2027-03-01"]],
    *[("moment", value) for value in [*NOT_MOMENT, "2027-02-30"]],
    *[("ids", value) for value in ["7", 1, {}, [0], [None], [[1]], [True], [1] * 101]],
    *[("item", value) for value in [[], "a", 1, True, {}, {"Id": 0}, {"id": 1}]],
    *[("items", value) for value in [{}, "a", 1, [1], [None], [{}], [{"Id": 1}] * 101]],
]


@pytest.mark.parametrize(("kind", "value"), WRONG)
def test_a_value_of_another_kind_or_out_of_bounds_is_refused(kind, value):
    with pytest.raises(ValidationError) as caught:
        FIELDS[kind].run_validation(value)

    # A number that somebody typed must not come back: it might be a card's.
    assert len(repr(value)) < 6 or repr(value) not in str(caught.value.detail)


RIGHT = [
    ("text", "  Jürgen 🏢 \u202e ", "Jürgen 🏢 \u202e"),
    ("text", "", ""),
    ("text", "x" * 255 + "  ", "x" * 255),
    ("id", 2**31 - 1, 2**31 - 1),
    ("count", -(2**31), -(2**31)),
    ("flag", False, False),
    ("double", 5, 5.0),
    ("latitude", -90, -90.0),
    ("amount", 12.5, Decimal("12.5")),
    ("amount", 0.1, Decimal("0.1")),
    ("amount", 3, Decimal(3)),
    ("amount", 9_999_999_999, Decimal(9_999_999_999)),
    ("kind", "Staff", "Staff"),
    ("at", "2027-03-01T09:00:00", local("2027-03-01T09:00")),
    ("at", " 2027-03-01 09:00 ", local("2027-03-01T09:00")),
    ("at", "2027-03-01t09:00:00z", dt.datetime(2027, 3, 1, 9, tzinfo=UTC)),
    ("at", "2027-03-01T09:00:00-07:00", dt.datetime(2027, 3, 1, 9, tzinfo=DENVER)),
    ("at", "2027-03-01T09:00:00-0700", dt.datetime(2027, 3, 1, 9, tzinfo=DENVER)),
    ("at", "2027-03-01T09:00:00.123456789", local("2027-03-01T09:00:00.123456")),
    ("moment", "2027-03-01T09:00:00", dt.datetime(2027, 3, 1, 9, tzinfo=UTC)),
    ("moment", "2027-03-31", dt.datetime(2027, 3, 31, tzinfo=UTC)),
    ("moment", "2027-03-31T23:00:00-07:00", dt.datetime(2027, 3, 31, 23, tzinfo=DENVER)),
    ("ids", [], []),
    ("ids", [1] * 100, [1] * 100),
    ("item", {"Id": 1, "Name": None, "Unknown": {}}, {"id": 1}),
    ("items", [{"Id": 1}, {"Id": 2, "Name": "b"}], [{"id": 1}, {"id": 2, "name": "b"}]),
]


@pytest.mark.parametrize(("kind", "value", "meant"), RIGHT)
def test_a_right_value_is_read(kind, value, meant):
    assert FIELDS[kind].run_validation(value) == meant


CELLS = [
    ("text", "12", "12"),
    ("id", "7", 7),
    ("count", " -3 ", -3),
    ("count", "+3", 3),
    ("flag", "TRUE", True),
    ("flag", " false ", False),
    ("double", "-73.9", -73.9),
    ("double", "1e2", 100.0),
    ("amount", "12.50", Decimal("12.50")),
    ("amount", " 3 ", Decimal(3)),
    ("kind", "Staff", "Staff"),
    ("at", "2027-03-01T09:00:00", local("2027-03-01T09:00")),
]


@pytest.mark.parametrize(("kind", "text", "meant"), CELLS)
def test_a_cell_is_read_as_its_fields_type(kind, text, meant):
    value = FIELDS[kind].run_validation(CSVCell(text))

    assert value == meant
    assert type(value) is type(meant)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("id", "1.0"),
        ("id", "0"),
        ("id", "٣"),
        ("id", "1_000"),
        ("id", "9" * 30),
        ("count", "abc"),
        ("flag", "yes"),
        ("flag", "1"),
        ("double", "1e999"),
        ("double", "nan"),
        ("double", "Infinity"),
        ("double", "1_0"),
        ("amount", "12.505"),
        ("amount", "1e999"),
        ("amount", "NaN"),
        ("amount", "9" * 50),
        ("ids", "1"),
        ("item", "1"),
    ],
)
def test_a_cell_that_does_not_read_so_is_refused(kind, text):
    with pytest.raises(ValidationError):
        FIELDS[kind].run_validation(CSVCell(text))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.text().map(CSVCell),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(list(AllFields.field_tree())), JSON))
def test_whatever_is_sent_is_read_or_refused(fields):
    with contextlib.suppress(ValidationError):
        AllFields.deserialize(fields)


def test_absent_null_and_unknown_fields_are_left_out():
    assert AllFields.deserialize({"Id": None, "id": 5, "Text": "", "IsStaff": True}) == {"text": ""}


def test_names_are_ours_inside():
    assert AllFields.deserialize({"HasCVV": True, "Item": {"Id": 3}}) == {
        "has_cvv": True, "item": {"id": 3}
    }  # fmt: skip


def test_a_required_field_may_neither_be_absent_nor_null():
    for fields in ({}, {"Id": None}):
        with pytest.raises(ValidationError) as caught:
            Thing.deserialize(fields)
        assert caught.value.detail == {"Id": ["Required."]}


def test_every_wrong_field_is_named():
    with pytest.raises(ValidationError) as caught:
        AllFields.deserialize(
            {"Id": 0, "Items": [{"Id": 1}, {"Id": 0, "Tags": ["x", 5]}], "Flag": 1}
        )

    assert caught.value.detail == {
        "Id": ["Must be at least 1."],
        "Flag": ["Must be true or false."],
        "Items": {1: {"Id": ["Must be at least 1."], "Tags": {1: ["Must be text."]}}},
    }


def test_text_may_have_to_be_filled_and_may_keep_its_space():
    with pytest.raises(ValidationError):
        TextField(allow_blank=False).run_validation("   ")
    assert TextField(trim=False).run_validation("  p w ") == "  p w "


def test_a_list_may_name_its_child():
    assert ListField(child=IdField()).run_validation([1]) == [1]


def test_a_field_without_reading_rule_takes_nothing():
    with pytest.raises(ValidationError):
        ContractField().run_validation("x")
    assert ContractField().to_representation("x") == "x"


# --- out ----------------------------------------------------------------------------------------


class Center(ContractSerializer):
    Id = IdField()
    Name = TextField(source="title")
    IsFavorite = BooleanField()
    Distance = DoubleField(source="place.distance")
    Items = Thing(many=True)
    Item = Thing()
    Secret = TextField(write_only=True)


def test_values_are_found_in_objects_and_mappings_and_methods():
    center = SimpleNamespace(
        id=1,
        title="North",
        is_favorite=False,
        place={"distance": 1.5},
        items=[{"id": 2}],
        item=SimpleNamespace(id=3, name="", tags=[]),
    )

    assert Center.render(center, {}) == {
        "Id": 1, "Name": "North", "IsFavorite": False, "Distance": 1.5, "Items": [{"Id": 2}],
        "Item": {"Id": 3, "Tags": []},
    }  # fmt: skip


def test_no_value_is_left_out_but_false_zero_and_empty_lists_stay():
    center = {"id": 0, "title": "", "is_favorite": False, "place": None, "items": [], "item": {}}

    assert Center.render(center, {}) == {"Id": 0, "IsFavorite": False, "Items": []}


def test_an_attribute_that_an_object_lacks_is_a_defect():
    with pytest.raises(AttributeError):
        Center.render(SimpleNamespace(id=1), {})


def test_a_relation_without_other_side_has_no_value():
    class Row:
        id = 1

        @property
        def name(self):
            raise ObjectDoesNotExist

        def tags(self):
            return ["by", "call"]

    assert Thing.render(Row(), {}) == {"Id": 1, "Tags": ["by", "call"]}


def test_a_field_may_find_its_value_in_its_own_way():
    class Doubled(IntegerField):
        def get_attribute(self, instance):
            return instance * 2

    class Answer(ContractSerializer):
        Number = Doubled()

    assert Answer.render(21, {}) == {"Number": 42}


def test_decimals_are_numbers_of_two_places_without_noise():
    field = DecimalField()

    written = [
        field.to_representation(Decimal(text)) for text in ("12.50", "0.1", "-0.00", "2.675")
    ]

    assert [repr(number) for number in written] == ["12.5", "0.1", "0.0", "2.68"]


@given(st.decimals("-9999999999.99", "9999999999.99", places=2))
def test_every_amount_is_written_exactly(amount):
    assert Decimal(repr(DecimalField().to_representation(amount))) == amount


def test_times_keep_their_zone_and_drop_fractions():
    field = DateTimeField()

    assert field.to_representation(dt.datetime(2027, 3, 1, 9, 0, 0, 5, tzinfo=DENVER)) == (
        "2027-03-01T09:00:00-07:00"
    )
    with pytest.raises(ValueError, match="no time zone"):
        field.to_representation(local("2027-03-01T09:00"))


def test_enumerations_and_other_values_are_written_as_text():
    class Status(models.TextChoices):
        NEW = "New"

    assert ChoiceField(Status).to_representation(Status.NEW) == "New"
    assert type(ChoiceField(Status).run_validation("New")) is str
    assert TextField().to_representation(5) == "5"
    assert (IntegerField().to_representation("5"), DoubleField().to_representation(5)) == (5, 5.0)


# --- addresses of files -------------------------------------------------------------------------


class Picture(ContractSerializer):
    Url = UrlField()


def test_addresses_begin_with_the_public_url(rf, settings):
    settings.PUBLIC_URL = "https://rooms.example.com/"
    request = rf.get("/", HTTP_HOST="testserver")

    assert Picture.render({"url": "/media/a.png"}, {"request": request}) == {
        "Url": "https://rooms.example.com/media/a.png"
    }


def test_without_a_public_url_they_begin_with_the_requests_host(rf, settings):
    settings.PUBLIC_URL = ""
    stored = SimpleNamespace(url="/media/a.png")

    assert Picture.render({"url": stored}, {"request": rf.get("/")}) == {
        "Url": "http://testserver/media/a.png"
    }
    assert Picture.render({"url": stored}, {}) == {"Url": "/media/a.png"}


def test_addresses_that_a_storage_made_absolute_stay(rf):
    request = rf.get("/")

    assert Picture.render({"url": "https://cdn.example/a"}, {"request": request}) == {
        "Url": "https://cdn.example/a"
    }
    assert Picture.render({"url": ""}, {"request": request}) == {}


# --- shape --------------------------------------------------------------------------------------


def test_the_shape_lists_names_in_order_and_what_they_hold():
    shape = AllFields.field_tree()

    assert list(shape)[:3] == ["Id", "Text", "Flag"]
    assert shape["Items"] == shape["Item"] == {"Id": {}, "Name": {}, "Tags": {}}


def test_the_context_does_not_outlive_the_answer():
    Picture.render({"url": "/a"}, {"request": None})

    assert Picture.get_shared().context == {}
