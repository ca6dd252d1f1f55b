"""Serializers: names, absent values, and rendering by compiled functions."""

from types import SimpleNamespace

import pytest
from django.core.exceptions import ObjectDoesNotExist
from rest_framework.exceptions import ValidationError

from roombook.api.fields import BooleanField, DoubleField, IdField, ListField, TextField
from roombook.api.serializers import ContractSerializer, RenderContext


class Thing(ContractSerializer):
    Id = IdField(required=True)
    Name = TextField()
    Tags = ListField(TextField())


def test_absent_null_and_unknown_fields_are_left_out_unless_they_are_required():
    fields = {"Id": 1, "id": 5, "Name": "", "Tags": None, "IsStaff": True}
    assert Thing.deserialize(fields) == {"id": 1, "name": ""}
    for absent in ({}, {"Id": None}):
        with pytest.raises(ValidationError) as caught:
            Thing.deserialize(absent)
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


def test_a_dict_or_a_relation_may_lack_a_value_but_an_object_no_attribute():
    class Row:
        id = 1
        tags = ["a"]

        @property
        def name(self):
            raise ObjectDoesNotExist

    assert render(Center, {"id": 1}) == {"Id": 1}
    assert render(Thing, Row()) == {"Id": 1, "Tags": ["a"]}
    with pytest.raises(AttributeError):
        render(Center, SimpleNamespace(id=1))


class CountedThing:
    def __init__(self):
        self.reads = 0

    @property
    def id(self):
        self.reads += 1
        return 7


def test_shared_objects_are_rendered_once_per_response_and_cached_types_once_per_process():
    class Counted(ContractSerializer):
        Id = IdField()

    class Cached(Counted):
        is_cached = True

    class Response(ContractSerializer):
        First = Counted(shared=True)
        Second = Counted(shared=True)
        Things = Counted(many=True, shared=True)
        Kept = Cached()

    thing, cached = CountedThing(), CountedThing()
    response = {"first": thing, "second": thing, "things": [thing], "kept": cached}
    for reads in (2, 4):
        rendered = render(Response, response)
        assert rendered.pop("Things") == [{"Id": 7}]
        assert rendered == {name: {"Id": 7} for name in ("First", "Second", "Kept")}
        assert (thing.reads, cached.reads) == (reads, 1)
