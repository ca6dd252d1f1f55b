"""The contract as data: its operations and ours, their fields, and the types of these.

It is derived from the serializers. docs/contract.md is generated from it, and tests compare it, and
responses, with the hand-written tables of tables.py. A type is written as the contract writes it:
`string`, `int`, `IList<ServiceOption>`. What ours are is written in docs/openapi.json and
docs/contract.md: a change of one that changes these files makes a test fail.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from roombook import urls
from roombook.api.errors import ResponseError
from roombook.api.fields import ListField
from roombook.api.operations import Operation
from roombook.api.serializers import ContractListSerializer, ContractSerializer
from roombook.naming import to_snake_case
from tests.contract.tables import OPERATIONS, ContractSchema, OperationSchema

RESPONSE_BASE = {"Success": "boolean", "Error": "ResponseError"}


def get_element_type(type_name: str) -> str:
    """Return `ServiceOption` for `IList<ServiceOption>`; any other type is its own element."""
    for prefix in ("IList<", "List<"):
        if type_name.startswith(prefix):
            return type_name.removeprefix(prefix).removesuffix(">")
    return type_name


def is_list_type(type_name: str) -> bool:
    return get_element_type(type_name) != type_name


def build_contract(patterns: Iterable[object]) -> ContractSchema:
    """Return the contract of the operations among these URL patterns."""
    views = get_operations(patterns)
    operations = [describe_operation(path, view) for path, view in views.items()]
    serializer_classes = find_serializer_classes(views.values())
    return ContractSchema(
        operations={each.name: each for each in operations},
        types={name: describe_fields(each()) for name, each in serializer_classes.items()},
    )


def get_operations(patterns: Iterable[object]) -> dict[str, type[Operation]]:
    """Return the Operations that URL patterns lead to, by their paths."""
    views = {}
    for pattern in patterns:
        view = getattr(getattr(pattern, "callback", None), "cls", None)
        if isinstance(view, type) and issubclass(view, Operation):
            views[f"/{getattr(pattern, 'name', '')}"] = view
    return views


def get_operation_name(view: type[Operation]) -> str:
    """Return `Check room availability` for CheckRoomAvailability."""
    return to_snake_case(view.__name__).replace("_", " ").capitalize()


def find_serializer_classes(
    operations: Iterable[type[Operation]],
) -> dict[str, type[ContractSerializer]]:
    """Return the classes that define the object types inside requests and responses, by name.

    A class with a `contract_type` is a part or another source of that type, not its definition.
    """
    serializers = [each() for view in operations for each in (view.Input, view.Output)]
    return {"ResponseError": ResponseError, **find_nested_classes(serializers)}


def find_nested_classes(
    serializers: Iterable[ContractSerializer],
) -> dict[str, type[ContractSerializer]]:
    """Return the classes that define the object types inside these objects, by name."""
    found: dict[str, type[ContractSerializer]] = {}
    pending = list(serializers)
    while pending:
        for each in pending.pop(0).fields.values():
            inner = getattr(each, "child", each)
            if isinstance(inner, ContractSerializer):
                pending.append(inner)
                if not inner.contract_type:
                    found[type(inner).__name__] = type(inner)
    return found


def describe_operation(path: str, operation: type[Operation]) -> OperationSchema:
    return OperationSchema(
        name=get_operation_name(operation),
        path=path,
        request=describe_fields(operation.Input()),
        response=describe_fields(operation.Output()),
        needs_token=operation.requires_token,
    )


def describe_fields(serializer: ContractSerializer) -> dict[str, str]:
    """Return the fields of an object with their types."""
    return {name: get_type_name(each) for name, each in serializer.fields.items()}


def get_type_name(field: Any) -> str:
    """Return the contract's name for the type of a field."""
    if field_type := getattr(field, "contract_type", ""):
        return str(field_type)
    if isinstance(field, ListField | ContractListSerializer):
        return f"IList<{get_type_name(field.child)}>"
    return type(field).__name__


CONTRACT = build_contract([*urls.contract_paths, *urls.extension_paths])
TYPES = CONTRACT.types
ALL_OPERATIONS = list(CONTRACT.operations.values())
EXTENSIONS = ALL_OPERATIONS[len(OPERATIONS) :]


def iterate_paths(fields: Mapping[str, str], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and type of every field of a request; of a list, of its first element.

    Requests, unlike ReservationInfo, do not nest in a circle.
    """
    for name, type_name in fields.items():
        path = f"{prefix}{name}"
        yield path, type_name
        if is_list_type(type_name):
            path, type_name = f"{path}.0", get_element_type(type_name)
            yield path, type_name
        yield from iterate_paths(TYPES.get(type_name, {}), f"{path}.")
