"""Requests and responses as the contract defines them.

Serializers and their fields carry the contract's names; the Python name of each value is derived
from it (naming.py) unless the field says `source=`. They are the only place that names the fields
of a response.

DRF reads requests. It would call several methods for every field of every object of a response,
which took 90% of a search, so `render` calls one function per type, compiled once: all attributes
are read by one call, and each value is converted by one more.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property, lru_cache
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

from django.core.exceptions import ObjectDoesNotExist
from django.http import HttpRequest
from rest_framework import serializers
from rest_framework.request import Request

from roombook.api.csv_table import FieldTree
from roombook.api.fields import MAX_LIST_LENGTH, StrictField, UrlField
from roombook.middleware import get_base_url
from roombook.naming import to_snake_case

MAX_CACHED_RECORDS = 4096
# Fields with such a value are left out of a response; false, 0 and [] stay (B2.1).
NO_VALUES: tuple[object, ...] = (None, "", {})

JSONDict: TypeAlias = dict[str, Any]
AnyField: TypeAlias = serializers.Field[Any, Any, Any, Any]


class RenderContext:
    """Shared by all objects of a response: the request's host and the objects rendered so far."""

    def __init__(self, request: HttpRequest | Request | None = None) -> None:
        self.request = request
        # Keeps a reference to the object, so that no other object gets the same id.
        self.shared: dict[tuple[object, int], tuple[object, object]] = {}

    @cached_property
    def base_url(self) -> str:
        return get_base_url(self.request)

    def build_url(self, url: str) -> str:
        """Return the URL with scheme and host; one that a storage made absolute stays as it is."""
        return url if "://" in url else f"{self.base_url}/{url.lstrip('/')}"


Render: TypeAlias = Callable[[Any, RenderContext], Any]


class ContractListSerializer(StrictField, serializers.ListSerializer[Any]):
    """The list that a ContractSerializer with `many=True` creates."""

    child: "ContractSerializer"
    json_types = (list,)
    default_error_messages = {"invalid": "Must be a list."}

    def __init__(
        self, *args: Any, shared: bool = False, max_length: int = MAX_LIST_LENGTH, **kwargs: Any
    ) -> None:
        super().__init__(*args, max_length=max_length, **kwargs)
        self.max_length: int = max_length
        self.is_shared = shared


class ContractSerializer(StrictField, serializers.Serializer[Any]):
    """An object of the contract, for requests and responses alike.

    In requests, absent and null fields are left out of the result, and unknown ones are ignored.
    In responses, fields without a value (null, empty text, an object without any value) are left
    out; `false`, `0` and `[]` stay.

    `shared=True` renders an object that occurs several times in one response only once.
    """

    # The contract's name of the type, where it is not the name of the class.
    contract_type = ""
    json_types = (dict,)
    # For records that are immutable and rendered without the request: one that occurs in many
    # responses is rendered once per process.
    is_cached: ClassVar[bool] = False
    default_error_messages = {"invalid": "Must be an object."}

    def __init__(self, *args: Any, shared: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.is_shared = shared

    @classmethod
    def many_init(cls, *args: Any, **kwargs: Any) -> ContractListSerializer:
        return ContractListSerializer(*args, child=cls(), **kwargs)

    def get_fields(self) -> dict[str, AnyField]:
        fields = super().get_fields()
        for name, field in fields.items():
            if field.source is None:
                field.source = to_snake_case(name)
        return fields

    _shared_instances: ClassVar[dict[type, Any]] = {}

    @classmethod
    def get_shared(cls) -> Self:
        """Return the instance that all requests use: building its fields is expensive."""
        instance: Self = cls._shared_instances.get(cls) or cls()
        cls._shared_instances[cls] = instance
        return instance

    @classmethod
    def field_tree(cls) -> FieldTree:
        """Return the names in the contract's order, nested: they sort columns and error lines."""
        return build_field_tree(cls.get_shared())

    # Requests

    @classmethod
    def deserialize(cls, data: object) -> JSONDict:
        """Return the fields of a request by their Python names.

        Raises a ValidationError that names every invalid field.
        """
        return dict(cls.get_shared().run_validation(data))

    # Responses

    @classmethod
    def render(cls, instance: object, context: RenderContext) -> JSONDict:
        """Return the object, a record or a dict, by the contract's names."""
        rendered: JSONDict = compile_serializer(cls)(instance, context)
        return rendered


def build_field_tree(field: AnyField) -> FieldTree:
    """Return the field's names in order, each with its own tree; `{}` for a plain value."""
    field = getattr(field, "child", field)
    if not isinstance(field, ContractSerializer):
        return {}
    return {name: build_field_tree(inner) for name, inner in field.fields.items()}


# --- Compiling ------------------------------------------------------------------------------------


class CompiledField(NamedTuple):
    """A field of a response: its name, where its value comes from, and how it is rendered."""

    name: str
    attribute: str | None  # None: the object itself, as for the parts of an address.
    render: Callable[..., object]
    takes_context: bool = False


def compile_object(fields: Sequence[CompiledField]) -> Render:
    """Return the function that renders an object, or a mapping, with these fields.

    A mapping may lack a field. A missing attribute of an object is a defect.
    """
    attributes = [field.attribute for field in fields if field.attribute is not None]
    whole_object = [index for index, field in enumerate(fields) if field.attribute is None]
    get_values = _compile_getter(attributes)
    steps = [(field.name, field.render, field.takes_context) for field in fields]

    def render(instance: object, context: RenderContext) -> JSONDict:
        values: Iterable[object]
        if isinstance(instance, dict):
            values = [instance.get(name) for name in attributes]
        else:
            try:
                values = get_values(instance)
            except ObjectDoesNotExist:
                values = [_get_related(instance, name) for name in attributes]
        if whole_object:
            values = list(values)
            for index in whole_object:
                values.insert(index, instance)
        result = {}
        # Runs hundreds of times per response: even `strict=` would take measurable time.
        for (name, convert, takes_context), value in zip(steps, values):  # noqa: B905
            if value is not None:
                rendered = convert(value, context) if takes_context else convert(value)
                if rendered or rendered not in NO_VALUES:
                    result[name] = rendered
        return result

    return render


def _compile_getter(attributes: Sequence[str]) -> Callable[[object], Iterable[object]]:
    """Return the function that reads all of these attributes."""
    if len(attributes) > 1:
        return attrgetter(*attributes)
    return lambda instance: [getattr(instance, name) for name in attributes]


def _get_related(instance: object, name: str) -> object:
    try:
        return getattr(instance, name)
    except ObjectDoesNotExist:  # The other side of a one-to-one relation.
        return None


def compile_list(render: Callable[..., object], *, takes_context: bool) -> Render:
    """Return the function that renders each element."""
    if takes_context:
        return lambda elements, context: [render(each, context) for each in elements]
    return lambda elements, context: [render(each) for each in elements]


def share(render: Render) -> Render:
    """Render an object that occurs several times in one response only once."""

    def render_shared(instance: object, context: RenderContext) -> object:
        key = (render, id(instance))
        known = context.shared.get(key)
        if known is None:
            known = context.shared[key] = (instance, render(instance, context))
        return known[1]

    return render_shared


@cache
def compile_serializer(serializer_class: type[ContractSerializer]) -> Render:
    """Return the function that renders objects of this type; compiled once per process."""
    fields = serializer_class.get_shared().fields
    return compile_object([_compile_field(name, field) for name, field in fields.items()])


@cache
def compile_cached_serializer(serializer_class: type[ContractSerializer]) -> Callable[..., object]:
    """The same for types that are `is_cached`: without context, and rendered once per record."""
    render = compile_serializer(serializer_class)
    context = RenderContext()
    return lru_cache(MAX_CACHED_RECORDS)(lambda record: render(record, context))


def _compile_field(name: str, field: AnyField) -> CompiledField:
    attribute = None if field.source == "*" else field.source
    render, takes_context = _compile_value(field)
    return CompiledField(name, attribute, render, takes_context)


def _compile_value(field: AnyField) -> tuple[Callable[..., object], bool]:
    """Return the function that renders the field's value, and whether it takes the context."""
    match field:
        case ContractListSerializer():
            render_element, takes_context = _compile_value(field.child)
            render = compile_list(render_element, takes_context=takes_context)
            return (share(render) if field.is_shared else render), True
        case ContractSerializer(is_cached=True):
            return compile_cached_serializer(type(field)), False
        case ContractSerializer():
            render = compile_serializer(type(field))
            return (share(render) if field.is_shared else render), True
        case UrlField():
            return field.render, True
        case StrictField(rendered_type=type() as rendered_type):
            return rendered_type, False
        case _:
            return field.to_representation, False
