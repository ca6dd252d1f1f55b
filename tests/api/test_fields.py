"""Fields: which values they accept, and how they render values."""

import datetime as dt
from decimal import Decimal

import pytest
from rest_framework.exceptions import ValidationError

from roombook.api.csv_table import CSVCell
from roombook.api.fields import (
    BooleanField,
    CenterDateTimeField,
    ChoiceField,
    DateTimeField,
    DecimalField,
    DoubleField,
    IdField,
    IntegerField,
    ListField,
    TextField,
)
from tests.api.test_serializers import Thing

UTC = dt.UTC
local = dt.datetime.fromisoformat
DENVER = dt.timezone(dt.timedelta(hours=-7))

FIELDS = {
    "text": TextField(),
    "id": IdField(),
    "count": IntegerField(),
    "flag": BooleanField(),
    "double": DoubleField(),
    "latitude": DoubleField(min_value=-90, max_value=90),
    "amount": DecimalField(),
    "hours": DecimalField(min_value=0, max_value=24, decimal_places=1),
    "kind": ChoiceField(["Account", "Staff"]),
    "at": CenterDateTimeField(),
    "utc": DateTimeField(),
    "ids": ListField(IdField()),
    "item": Thing(),
    "items": Thing(many=True),
}
NOT_NUMBER = [True, "", "12", [], {"a": 1}]
NOT_DATE_TIME = [
    1767225600, "", "2027-03-01T9:00:00", "20270301T090000", "2027-02-30T09:00:00",
    "2027-03-01T24:00:00", "2027-03-01T09:00:00 -07:00", "2027-03-01T09:00:00+24:00",
    "2027-03-01T09:00:00+07:60", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00",
    "٢٠٢٧-03-01T09:00:00", "2027-03-01T09:00:00Zulu", ["2027-03-01T09:00:00"],
]  # fmt: skip

WRONG = {
    "text": [True, 0, [], {}, "a\0b", "\udfff x", "x" * 256],
    "id": [*NOT_NUMBER, 0, 2**31, 1.0, 10**400],
    "count": [2**31, -(2**31) - 1],
    "flag": [0, 1, "true", "", []],
    "double": [*NOT_NUMBER, float("nan"), float("inf"), 10**400],
    "latitude": [90.1, -91],
    "amount": [*NOT_NUMBER, 0.001, 1e-300, 1e300, float("nan"), -(10**10), 10**400],
    "hours": [-0.5, 24.5, 0.25],
    "kind": ["account", "", 1, []],
    "at": [*NOT_DATE_TIME, "2027-03-01"],
    "utc": ["2027-02-30"],
    "ids": ["7", {}, [0], [None], [1] * 101],
    "item": [[], "a", {}, {"Id": 0}, {"id": 1}],
    "items": [{}, "a", [1], [None], [{}], [{"Id": 1}] * 101],
}


@pytest.mark.parametrize(
    ("kind", "value"), [(kind, value) for kind, values in WRONG.items() for value in values]
)
def test_value_of_another_type_or_out_of_bounds_is_invalid(kind, value):
    with pytest.raises(ValidationError) as caught:
        FIELDS[kind].run_validation(value)

    # A submitted number must not be repeated: it might be a card's.
    assert len(repr(value)) < 6 or repr(value) not in str(caught.value.detail)


RIGHT = [
    ("text", "  Jürgen 🏢 \u202e ", "Jürgen 🏢 \u202e"),
    ("text", "x" * 255 + "  ", "x" * 255),
    ("id", 2**31 - 1, 2**31 - 1),
    ("flag", False, False),
    ("double", 5, 5.0),
    ("latitude", -90, -90.0),
    ("amount", 0.1, Decimal("0.1")),
    ("amount", 9_999_999_999, Decimal(9_999_999_999)),
    ("at", " 2027-03-01 09:00 ", local("2027-03-01T09:00")),
    ("at", "2027-03-01t09:00:00z", dt.datetime(2027, 3, 1, 9, tzinfo=UTC)),
    ("at", "2027-03-01T09:00:00-0700", dt.datetime(2027, 3, 1, 9, tzinfo=DENVER)),
    ("at", "2027-03-01T09:00:00.123456789", local("2027-03-01T09:00:00.123456")),
    ("utc", "2027-03-01T09:00:00", dt.datetime(2027, 3, 1, 9, tzinfo=UTC)),
    ("utc", "2027-03-31", dt.datetime(2027, 3, 31, tzinfo=UTC)),
    ("utc", "2027-03-31T23:00:00-07:00", dt.datetime(2027, 3, 31, 23, tzinfo=DENVER)),
    ("ids", [1] * 100, [1] * 100),
    ("item", {"Id": 1, "Name": None, "Unknown": {}}, {"id": 1}),
    ("items", [{"Id": 1}, {"Id": 2, "Name": "b"}], [{"id": 1}, {"id": 2, "name": "b"}]),
]


@pytest.mark.parametrize(("kind", "value", "expected"), RIGHT)
def test_valid_value_is_deserialized(kind, value, expected):
    assert FIELDS[kind].run_validation(value) == expected


CELLS = [
    ("text", "12", "12"),
    ("kind", "Staff", "Staff"),
    ("id", "7", 7),
    ("count", " -3 ", -3),
    ("flag", "TRUE", True),
    ("flag", " false ", False),
    ("double", "1e2", 100.0),
    ("amount", "12.50", Decimal("12.50")),
    ("amount", " 3 ", Decimal(3)),
]


@pytest.mark.parametrize(("kind", "text", "expected"), CELLS)
def test_csv_cell_is_deserialized_as_the_type_of_its_field(kind, text, expected):
    value = FIELDS[kind].run_validation(CSVCell(text))

    assert value == expected
    assert type(value) is type(expected)


WRONG_CELLS = {
    "id": ["1.0", "0", "٣", "1_000", "9" * 30],
    "count": ["abc"],
    "flag": ["yes", "1"],
    "double": ["1e999", "nan", "Infinity", "1_0"],
    "amount": ["12.505", "1e999", "NaN", "9" * 50],
    "ids": ["1"],
    "item": ["1"],
}


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in WRONG_CELLS.items() for text in texts]
)
def test_csv_cell_of_another_type_is_invalid(kind, text):
    with pytest.raises(ValidationError):
        FIELDS[kind].run_validation(CSVCell(text))


def test_text_field_can_require_text_and_keep_spaces():
    with pytest.raises(ValidationError):
        TextField(allow_blank=False).run_validation("   ")
    assert TextField(trim=False).run_validation("  p w ") == "  p w "


def test_decimals_are_rendered_as_numbers_with_two_places():
    field = DecimalField()

    rendered = [
        field.to_representation(Decimal(text)) for text in ("12.50", "0.1", "-0.00", "2.675")
    ]

    assert [repr(number) for number in rendered] == ["12.5", "0.1", "0.0", "2.68"]


def test_date_times_are_rendered_with_offset_and_without_fractions():
    field = DateTimeField()

    assert field.to_representation(dt.datetime(2027, 3, 1, 9, 0, 0, 5, tzinfo=DENVER)) == (
        "2027-03-01T09:00:00-07:00"
    )
    with pytest.raises(ValueError, match="no time zone"):
        field.to_representation(local("2027-03-01T09:00"))
