"""Serializers: names, absent values, and rendering by compiled functions."""

import contextlib
from types import SimpleNamespace

import pytest
from django.core.exceptions import ObjectDoesNotExist
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.exceptions import ValidationError

from roombook.api.csv_table import CSVCell
from roombook.api.fields import BooleanField, DoubleField, IdField, TextField
from roombook.api.serializers import ContractSerializer, RenderContext
from tests.api.urls import AllFields, Thing

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.text().map(CSVCell),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(list(AllFields.field_tree())), JSON))
def test_whatever_is_sent_is_deserialized_or_invalid(fields):
    with contextlib.suppress(ValidationError):
        AllFields.deserialize(fields)


def test_absent_null_and_unknown_fields_are_left_out():
    assert AllFields.deserialize({"Id": None, "id": 5, "Text": "", "IsStaff": True}) == {"text": ""}


def test_required_field_must_be_neither_absent_nor_null():
    for fields in ({}, {"Id": None}):
        with pytest.raises(ValidationError) as caught:
            Thing.deserialize(fields)
        assert caught.value.detail == {"Id": ["Required."]}


# --- Rendering ------------------------------------------------------------------------------------


class Place(ContractSerializer):
    Latitude = DoubleField()


class Center(ContractSerializer):
    Id = IdField()
    Name = TextField(source="title")
    IsFavorite = BooleanField()
    Place = Place(source="*")
    Items = Thing(many=True)
    Item = Thing()


def render(serializer, instance):
    return serializer.render(instance, RenderContext())


def test_objects_and_dicts_are_rendered_alike():
    values = {"id": 1, "title": "North", "is_favorite": False, "latitude": 1.5}
    values |= {"items": [{"id": 2}], "item": SimpleNamespace(id=3, name="", tags=[])}
    expected = {
        "Id": 1, "Name": "North", "IsFavorite": False, "Place": {"Latitude": 1.5},
        "Items": [{"Id": 2}], "Item": {"Id": 3, "Tags": []},
    }  # fmt: skip

    assert render(Center, values) == expected
    assert render(Center, SimpleNamespace(**values)) == expected
    assert list(render(Center, values)) == list(expected)


def test_a_dict_may_lack_a_field_but_an_object_may_not():
    assert render(Center, {"id": 1}) == {"Id": 1}
    with pytest.raises(AttributeError):
        render(Center, SimpleNamespace(id=1))


def test_a_missing_related_object_has_no_value():
    class Row:
        id = 1
        tags = ["a"]

        @property
        def name(self):
            raise ObjectDoesNotExist

    assert render(Thing, Row()) == {"Id": 1, "Tags": ["a"]}


class Counted(ContractSerializer):
    Id = IdField()


class CountedThing:
    def __init__(self):
        self.reads = 0

    @property
    def id(self):
        self.reads += 1
        return 7


def test_a_shared_object_is_rendered_once_per_response():
    class Pair(ContractSerializer):
        First = Counted(shared=True)
        Second = Counted(shared=True)
        Things = Counted(many=True, shared=True)

    thing = CountedThing()
    pair = {"first": thing, "second": thing, "things": [thing]}

    for reads in (2, 4):
        rendered = render(Pair, pair)
        assert rendered == {"First": {"Id": 7}, "Second": {"Id": 7}, "Things": [{"Id": 7}]}
        assert thing.reads == reads


def test_a_cached_type_is_rendered_once_per_record():
    class Cached(Counted):
        is_cached = True

    class Response(ContractSerializer):
        Thing = Cached()

    thing, other = CountedThing(), CountedThing()
    for each in (thing, thing, other):
        assert render(Response, {"thing": each}) == {"Thing": {"Id": 7}}

    assert (thing.reads, other.reads) == (1, 1)
