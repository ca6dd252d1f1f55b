"""Is an answer what the contract says? Pure: any service's answers can be compared."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from roombook.api import contract

# ISO 8601 with seconds and an offset, no fractions (B5.1).
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([+-]\d\d:\d\d|Z)", re.ASCII)


def is_text(value: Any) -> bool:
    # An empty text is no value, and a field without a value is left out (B2.1).
    return isinstance(value, str) and value != ""


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def is_decimal(value: Any) -> bool:
    return is_number(value) and round(value, 2) == value


def is_moment(value: Any) -> bool:
    return isinstance(value, str) and MOMENT.fullmatch(value) is not None


PLAIN: dict[str, Callable[[Any], bool]] = {
    "string": is_text,
    "int": is_whole,
    "int?": is_whole,
    "bool": is_bool,
    "boolean": is_bool,
    "double": is_number,
    "decimal": is_decimal,
    "DateTime": is_moment,
    **dict.fromkeys(contract.ENUMERATIONS, is_text),
}


class Comparison:
    """Compares answers with the contract's types, and keeps what it has seen of them."""

    def __init__(self) -> None:
        # Each field that occurred, by its type.
        self.seen: dict[str, set[str]] = {}
        # A line for each thing that is not as it should be, once however often it occurred.
        self.differences: dict[str, None] = {}

    def answer(self, operation: contract.Operation, body: Any) -> None:
        """Compare one whole body, of a success or a failure."""
        fields = contract.RESPONSE_BASE
        if isinstance(body, dict):
            if body.get("Success") is True:
                fields = {"Success": "boolean", **operation.response}
            if "Success" not in body:
                self._differs(operation.path, "", "lacks Success")
        self._object("ResponseBase", fields, body, operation.path, "")

    def unseen(self, type_name: str) -> list[str]:
        """The fields of a type that no answer had so far."""
        seen = self.seen.get(type_name, set())
        return [name for name in contract.TYPES[type_name] if name not in seen]

    def _differs(self, where: str, name: str, what: str) -> None:
        self.differences[f"{where}: {name or 'the body'} {what}"] = None

    def _object(
        self, type_name: str, fields: Mapping[str, str], value: Any, where: str, above: str
    ) -> None:
        if not isinstance(value, dict):
            self._differs(where, above, f"is {kind_of(value)} and no {type_name}")
            return
        known = [name for name in value if name in fields]
        if known != [name for name in fields if name in value]:
            self._differs(where, above, "has its fields in another order")
        for name, inner in value.items():
            path = f"{above}.{name}" if above else name
            if name in fields:
                self.seen.setdefault(type_name, set()).add(name)
                self._value(fields[name], inner, where, path)
            else:
                self._differs(where, path, "is not in the contract")

    def _value(self, type_name: str, value: Any, where: str, path: str) -> None:
        if contract.is_list(type_name):
            if not isinstance(value, list):
                self._differs(where, path, f"is {kind_of(value)} and no list")
                return
            for element in value:
                self._value(contract.element_of(type_name), element, where, path)
        elif type_name in contract.TYPES:
            self._object(type_name, contract.TYPES[type_name], value, where, path)
        elif not PLAIN[type_name](value):
            # What it is, not its value: that may be somebody's name.
            self._differs(where, path, f"is {kind_of(value)} and no {type_name}")


def kind_of(value: Any) -> str:
    """What JSON calls it."""
    if value is None:
        return "null"
    if value == "":
        return "an empty string"
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "a string"}
    return kinds.get(type(value), "a list" if isinstance(value, list) else "an object")


def types_of(operations: Iterable[contract.Operation]) -> set[str]:
    """The types that these operations can answer with, nested ones too."""
    found: set[str] = set()
    waiting = [type_name for each in operations for type_name in each.response.values()]
    while waiting:
        type_name = contract.element_of(waiting.pop())
        if type_name in contract.TYPES and type_name not in found:
            found.add(type_name)
            waiting += contract.TYPES[type_name].values()
    return found
