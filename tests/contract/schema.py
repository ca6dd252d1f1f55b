"""The contract as tests use it: its operations and ours, their types, and paths through them.

test_contract.py compares the contract with the hand-written tables. What ours are is written in
docs/openapi.json and docs/contract.md: a change of one that changes these files makes a test fail.
"""

from collections.abc import Iterator, Mapping

from roombook import urls
from roombook.api.contract_schema import build_contract, get_element_type, is_list_type
from tests.contract.tables import ENUMERATIONS, OPERATIONS

__all__ = [
    "ALL_OPERATIONS",
    "CONTRACT",
    "ENUMERATIONS",
    "EXTENSIONS",
    "OPERATIONS",
    "TYPES",
    "iterate_paths",
]


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
