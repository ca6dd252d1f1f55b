"""Checks responses against the contract: names, types and order of their fields."""

import re
from collections.abc import Mapping
from typing import Any

from tests.contract.schema import RESPONSE_BASE, get_element_type, is_list_type
from tests.contract.tables import ContractSchema, OperationSchema

# ISO 8601 with seconds and an offset, without fractions (B5.1).
DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([+-]\d\d:\d\d|Z)", re.ASCII)
# The types of JSON values; all other simple types are text.
VALUE_TYPES: dict[str, Any] = {
    **dict.fromkeys(("int", "int?"), int),
    **dict.fromkeys(("bool", "boolean"), bool),
    **dict.fromkeys(("double", "decimal"), (int, float)),
    **dict.fromkeys(("string", "DateTime"), str),
    "object": dict,
}


class ConformanceChecker:
    """Compares responses with the contract's types, and collects the differences."""

    def __init__(self, contract: ContractSchema) -> None:
        self.contract = contract
        # The fields that occurred, with the name of their type.
        self.seen: set[tuple[str, str]] = set()
        self.differences: set[str] = set()

    def check_response(self, operation: OperationSchema, body: Mapping[str, Any]) -> None:
        """Compare the body of a success or a failure."""
        fields: Mapping[str, str] = RESPONSE_BASE
        if body.get("Success") is True:
            fields = {"Success": "boolean", **operation.response}
        if "Success" not in body:
            self.differences.add(f"{operation.path} lacks Success")
        self._check_object(operation.path, "ResponseBase", fields, body)

    def _check_object(
        self, place: str, type_name: str, fields: Mapping[str, str], value: Any
    ) -> None:
        names = [name for name in fields if name in value]
        if not isinstance(value, dict) or list(value) != names:
            self.differences.add(f"{place} has not the fields of {type_name} in their order")
            return
        for name, inner in value.items():
            self.seen.add((type_name, name))
            element_type = get_element_type(fields[name])
            elements = inner if isinstance(inner, list) else [inner]
            if is_list_type(fields[name]) != isinstance(inner, list):
                self.differences.add(f"{place}.{name} is no {fields[name]}")
            for each in elements:
                self._check_value(f"{place}.{name}", element_type, each)

    def _check_value(self, place: str, type_name: str, value: Any) -> None:
        if type_name in self.contract.types:
            self._check_object(place, type_name, self.contract.types[type_name], value)
            return
        expected = VALUE_TYPES.get(type_name, str)
        # Empty text is no value, and a field without a value is left out (B2.1).
        fits = isinstance(value, expected) and value != ""
        fits &= isinstance(value, bool) == (expected is bool)
        if fits and type_name == "DateTime":
            fits = DATE_TIME.fullmatch(value) is not None
        if fits and type_name == "decimal":
            fits = round(value, 2) == value
        if not fits:
            # Without the value, which may be personal data.
            self.differences.add(f"{place} is no {type_name}")
