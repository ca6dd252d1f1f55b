"""Checks responses against the contract: names, types and order of their fields."""

import re
from collections.abc import Callable, Mapping

from tests.contract.schema import RESPONSE_BASE, get_element_type, is_list_type
from tests.contract.tables import ContractSchema, OperationSchema

# ISO 8601 with seconds and an offset, without fractions (B5.1).
DATE_TIME_PATTERN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([+-]\d\d:\d\d|Z)", re.ASCII)


def is_text(value: object) -> bool:
    # Empty text is no value, and a field without a value is left out (B2.1).
    return isinstance(value, str) and value != ""


def is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_boolean(value: object) -> bool:
    return isinstance(value, bool)


def is_decimal(value: object) -> bool:
    return isinstance(value, int | float) and is_number(value) and round(value, 2) == value


def is_date_time(value: object) -> bool:
    return isinstance(value, str) and DATE_TIME_PATTERN.fullmatch(value) is not None


def is_object(value: object) -> bool:
    return isinstance(value, dict)


# All other simple types are enumerations, which are text.
VALUE_CHECKS: dict[str, Callable[[object], bool]] = {
    "string": is_text,
    "int": is_integer,
    "int?": is_integer,
    "bool": is_boolean,
    "boolean": is_boolean,
    "double": is_number,
    "decimal": is_decimal,
    "DateTime": is_date_time,
    "object": is_object,
}


class ConformanceChecker:
    """Compares responses with the contract's types, and collects the differences."""

    def __init__(self, contract: ContractSchema) -> None:
        self.contract = contract
        # The fields that occurred, by the name of their type.
        self.seen: dict[str, set[str]] = {}
        # One line per distinct difference (a dict preserves the order).
        self.differences: dict[str, None] = {}

    def check_response(self, operation: OperationSchema, body: object) -> None:
        """Compare the body of a success or a failure."""
        fields: Mapping[str, str] = RESPONSE_BASE
        if isinstance(body, dict):
            if body.get("Success") is True:
                fields = {"Success": "boolean", **operation.response}
            if "Success" not in body:
                self._add_difference(operation.path, "", "lacks Success")
        self._check_object("ResponseBase", fields, body, operation.path, "")

    def _add_difference(self, operation_path: str, field_path: str, problem: str) -> None:
        self.differences[f"{operation_path}: {field_path or 'the body'} {problem}"] = None

    def _check_object(
        self,
        type_name: str,
        fields: Mapping[str, str],
        value: object,
        operation_path: str,
        field_path: str,
    ) -> None:
        if not isinstance(value, dict):
            problem = f"is {describe_json_type(value)} and no {type_name}"
            self._add_difference(operation_path, field_path, problem)
            return
        known = [name for name in value if name in fields]
        if known != [name for name in fields if name in value]:
            self._add_difference(operation_path, field_path, "has its fields in another order")
        for name, inner in value.items():
            inner_path = f"{field_path}.{name}" if field_path else name
            if name in fields:
                self.seen.setdefault(type_name, set()).add(name)
                self._check_value(fields[name], inner, operation_path, inner_path)
            else:
                self._add_difference(operation_path, inner_path, "is not in the contract")

    def _check_value(
        self, type_name: str, value: object, operation_path: str, field_path: str
    ) -> None:
        if is_list_type(type_name):
            if not isinstance(value, list):
                problem = f"is {describe_json_type(value)} and no list"
                self._add_difference(operation_path, field_path, problem)
                return
            for element in value:
                element_type = get_element_type(type_name)
                self._check_value(element_type, element, operation_path, field_path)
        elif type_name in self.contract.types:
            fields = self.contract.types[type_name]
            self._check_object(type_name, fields, value, operation_path, field_path)
        elif not VALUE_CHECKS.get(type_name, is_text)(value):
            # Report the type only: the value may be personal data.
            problem = f"is {describe_json_type(value)} and no {type_name}"
            self._add_difference(operation_path, field_path, problem)


def describe_json_type(value: object) -> str:
    """Return the JSON name of the value's type."""
    if value is None:
        return "null"
    if value == "":
        return "an empty string"
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "a string"}
    return kinds.get(type(value), "a list" if isinstance(value, list) else "an object")
