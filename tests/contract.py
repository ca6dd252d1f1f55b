"""The contract as tests read it; its one home is roombook/api/contract.py."""

from roombook.api.contract import (
    ENUMERATIONS,
    EXTENSIONS,
    OPERATIONS,
    REQUEST_BASE,
    RESPONSE_BASE,
    SECURE_REQUEST_BASE,
    TYPES,
    Operation,
    element_of,
    is_list,
    paths_of,
)

__all__ = [
    "ENUMERATIONS",
    "EXTENSIONS",
    "OPERATIONS",
    "REQUEST_BASE",
    "RESPONSE_BASE",
    "SECURE_REQUEST_BASE",
    "TYPES",
    "Operation",
    "element_of",
    "is_list",
    "paths_of",
]
