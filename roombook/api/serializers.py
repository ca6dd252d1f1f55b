"""Requests and responses as the contract defines them.

Serializers and their fields carry the contract's names; the Python name of each value is derived
from it (naming.py) unless the field says `source=`. They are the only place that names the fields
of a response: `ContractSerializer.render` compiles them (rendering.py).
"""

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, ClassVar, Self, TypeAlias

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.fields import SkipField, empty

from roombook.api.csv_table import FieldTree
from roombook.api.fields import (
    MAX_LIST_LENGTH,
    REQUIRED_MESSAGES,
    ContractField,
    UrlField,
    validate_list,
)
from roombook.api.rendering import (
    CompiledField,
    JSONDict,
    Render,
    RenderContext,
    compile_list,
    compile_object,
    share,
)
from roombook.naming import to_snake_case

MAX_CACHED_RECORDS = 4096

AnyField: TypeAlias = serializers.Field[Any, Any, Any, Any]


class ContractListSerializer(serializers.ListSerializer[Any]):
    """The list that a ContractSerializer with `many=True` creates."""

    default_error_messages = {**REQUIRED_MESSAGES}

    child: "ContractSerializer"

    def __init__(
        self,
        *args: Any,
        shared: bool = False,
        contract_type: str = "",
        max_length: int = MAX_LIST_LENGTH,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.max_length: int = max_length
        self.is_shared = shared
        self.contract_type = contract_type

    def to_internal_value(self, data: object) -> list[Any]:
        values: list[object] = []
        errors: dict[Any, Any] = {}
        for index, element in enumerate(validate_list(data, self.max_length)):
            try:
                values.append(self.run_child_validation(element))
            except ValidationError as error:
                errors[index] = error.detail
        if errors:
            raise ValidationError(errors)
        return values


class ContractSerializer(serializers.Serializer[Any]):
    """An object of the contract, for requests and responses alike.

    In requests, absent and null fields are left out of the result, and unknown ones are ignored.
    In responses, fields without a value (null, empty text, an object without any value) are left
    out; `false`, `0` and `[]` stay.

    `shared=True` renders an object that occurs several times in one response only once.
    """

    # The contract's name of the type, where it is not the name of the class.
    contract_type: ClassVar[str] = ""
    # For records that are immutable and rendered without the request: one that occurs in many
    # responses is rendered once per process.
    is_cached: ClassVar[bool] = False

    default_error_messages = {
        **REQUIRED_MESSAGES,
        "invalid": "Must be an object.",
    }

    def __init__(self, *args: Any, shared: bool = False, **kwargs: Any) -> None:
        kwargs.setdefault("required", False)
        super().__init__(*args, **kwargs)
        self.is_shared = shared

    @classmethod
    def many_init(cls, *args: Any, **kwargs: Any) -> ContractListSerializer:
        return ContractListSerializer(*args, **{"required": False, "child": cls(), **kwargs})

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

    def to_internal_value(self, data: object) -> JSONDict:
        if not isinstance(data, Mapping):
            # An error of the object itself, not of one of its fields.
            self.fail("invalid")
        values: JSONDict = {}
        errors: dict[str, Any] = {}
        for name, field in self.fields.items():
            sent = data.get(name)
            try:
                value = field.run_validation(empty if sent is None else sent)
            except SkipField:
                continue
            except ValidationError as error:
                errors[name] = error.detail
            else:
                self.set_value(values, field.source_attrs, value)
        if errors:
            raise ValidationError(errors)
        return values

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
        case ContractField(rendered_type=type() as rendered_type):
            return rendered_type, False
        case _:
            return field.to_representation, False
