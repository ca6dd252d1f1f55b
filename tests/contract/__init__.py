"""The contract as an oracle for tests: hand-written tables, and paths through them."""

from collections.abc import Iterator, Mapping

from roombook.api.contract_schema import get_element_type, is_list_type
from tests.contract.extensions import ALL_OPERATIONS, CONTRACT, EXTENSIONS, TYPES
from tests.contract.tables import ENUMERATIONS, OPERATIONS, REQUEST_BASE, RESPONSE_BASE

__all__ = [
    "ALL_OPERATIONS",
    "CONTRACT",
    "ENUMERATIONS",
    "EXTENSIONS",
    "OPERATIONS",
    "REQUEST_BASE",
    "RESPONSE_BASE",
    "TYPES",
    "iterate_paths",
]


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
