"""Is an answer what the contract says? Pure: any service's answers can be compared."""

import re
from collections.abc import Callable, Iterator
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
    """Compares answers with the contract's types, and keeps what it has seen of them.

    `seen` has each field that occurred, as (type, field); `differences` what is not as it should
    be, a line each.
    """

    def __init__(self) -> None:
        self.seen: set[tuple[str, str]] = set()
        self.differences: list[str] = []

    def answer(self, operation: contract.Operation, body: Any) -> None:
        """Compare one whole body, of a success or a failure."""
        if not isinstance(body, dict):
            self._differs(operation.path, "is no object")
            return
        fields = {**contract.RESPONSE_BASE}
        if body.get("Success") is True:
            # `Success` stands first, then the operation's own fields; no Error beside them.
            fields = {"Success": "boolean", **operation.response}
        if "Success" not in body:
            self._differs(operation.path, "lacks Success")
        self._object("", fields, body, operation.path)

    def unseen(self, type_name: str) -> list[str]:
        """The fields of a type that no answer had so far."""
        return [name for name in contract.TYPES[type_name] if (type_name, name) not in self.seen]

    def _differs(self, path: str, what: str) -> None:
        self.differences.append(f"{path} {what}")

    def _object(self, type_name: str, fields: dict[str, str], value: Any, path: str) -> None:
        if not isinstance(value, dict):
            self._differs(path, f"is no {type_name or 'object'}")
            return
        known = [name for name in value if name in fields]
        for name in value:
            if name not in fields:
                self._differs(f"{path} {name}", "is not in the contract")
        if known != [name for name in fields if name in value]:
            self._differs(path, "has its fields in another order")
        for name in known:
            self.seen.add((type_name, name))
            self._value(fields[name], value[name], f"{path} {name}")

    def _value(self, type_name: str, value: Any, path: str) -> None:
        if contract.is_list(type_name):
            if not isinstance(value, list):
                self._differs(path, "is no list")
                return
            for index, element in enumerate(value):
                self._value(contract.element_of(type_name), element, f"{path}.{index}")
        elif type_name in contract.TYPES:
            self._object(type_name, contract.TYPES[type_name], value, path)
        elif not PLAIN[type_name](value):
            # What it is, not its value: that may be somebody's name.
            self._differs(path, f"is {kind_of(value)} and no {type_name}")


def kind_of(value: Any) -> str:
    """What JSON calls it."""
    if value is None:
        return "null"
    if value == "":
        return "an empty string"
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "a string"}
    return kinds.get(type(value), "a list" if isinstance(value, list) else "an object")


def fields_of(operations: list[contract.Operation]) -> Iterator[str]:
    """Names of the types that these operations can answer with."""
    found: list[str] = []
    waiting = [type_name for each in operations for type_name in each.response.values()]
    while waiting:
        type_name = contract.element_of(waiting.pop())
        if type_name in contract.TYPES and type_name not in found:
            found.append(type_name)
            waiting += contract.TYPES[type_name].values()
    yield from sorted(found)
