"""Finds what a client of an older OpenAPI description would notice as broken in a newer one.

Text does not count, nor do new operations, new optional fields of requests, new fields of responses
and new values that clients should expect (CONTRIBUTING.md, "Compatibility").
"""

from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

# Bounds of requests: a greater lower bound, or a smaller upper one, refuses what was accepted.
LOWER_BOUNDS = ("minimum", "minLength", "minItems")
UPPER_BOUNDS = ("maximum", "maxLength", "maxItems")


def find_breaking_changes(old: Schema, new: Schema) -> list[str]:
    """Return a sentence for each change that breaks a client."""
    return list(dict.fromkeys(Comparison(old, new).compare()))


class Comparison:
    """Two descriptions, and the pairs of types that were compared."""

    def __init__(self, old: Schema, new: Schema) -> None:
        self.old = old
        self.new = new
        self.compared: set[tuple[str, str, bool]] = set()

    def compare(self) -> Iterator[str]:
        for path, old_methods in self.old["paths"].items():
            for method, old in old_methods.items():
                new = self.new["paths"].get(path, {}).get(method)
                if new is None:
                    yield f"{path}: the operation was removed."
                else:
                    yield from self.compare_operations(path, old, new)

    def compare_operations(self, path: str, old: Schema, new: Schema) -> Iterator[str]:
        old_parameters = {each["name"]: each for each in old.get("parameters", ())}
        new_parameters = {each["name"]: each for each in new.get("parameters", ())}
        for name in old_parameters.keys() - new_parameters.keys():
            yield f"{path}: the parameter {name} was removed."
        for name, parameter in new_parameters.items():
            before = old_parameters.get(name, {})
            if parameter.get("required") and not before.get("required"):
                yield f"{path}: the parameter {name} became required."
            if before:
                schemas = before["schema"], parameter["schema"]
                yield from self.compare_schemas(f"{path}: {name}", *schemas, is_request=True)
        for old_body, new_body, is_request in (
            (old["requestBody"], new["requestBody"], True),
            (old["responses"]["200"], new["responses"]["200"], False),
        ):
            kind = "request" if is_request else "response"
            for media_type, content in old_body["content"].items():
                if media_type not in new_body["content"]:
                    yield f"{path}: the {kind} can no longer be {media_type}."
                    continue
                schemas = content["schema"], new_body["content"][media_type]["schema"]
                yield from self.compare_schemas(f"{path} {kind}", *schemas, is_request=is_request)
        new_codes = get_statuses(self.new, new)
        for code, status in get_statuses(self.old, old).items():
            if new_codes.get(code, status) != status:
                yield f"{path}: {code} has the status {new_codes[code]} instead of {status}."

    def compare_schemas(
        self, place: str, old: Schema, new: Schema, *, is_request: bool
    ) -> Iterator[str]:
        old_name, old = resolve(self.old, old)
        new_name, new = resolve(self.new, new)
        if old_name and new_name:
            if (old_name, new_name, is_request) in self.compared:
                return
            self.compared.add((old_name, new_name, is_request))
            # A type of several operations is named by its own name.
            place = place if old_name.endswith(("Request", "Response")) else old_name
        old_types, new_types = get_types(old), get_types(new)
        # Requests may accept more, and responses may have less.
        lost = old_types - new_types if is_request else new_types - old_types
        if lost or old.get("format") != new.get("format"):
            old_kind, new_kind = describe_kind(old), describe_kind(new)
            yield f"{place}: the type changed from {old_kind} to {new_kind}."
            return
        if is_request:
            yield from compare_bounds(place, old, new)
        if "items" in old and "items" in new:
            schemas = old["items"], new["items"]
            yield from self.compare_schemas(f"{place}[]", *schemas, is_request=is_request)
        yield from self.compare_properties(place, old, new, is_request=is_request)

    def compare_properties(
        self, place: str, old: Schema, new: Schema, *, is_request: bool
    ) -> Iterator[str]:
        old_fields, new_fields = old.get("properties", {}), new.get("properties", {})
        old_required, new_required = set(old.get("required", ())), set(new.get("required", ()))
        for name, field in old_fields.items():
            if name not in new_fields:
                yield f"{place}: the field {name} was removed."
                continue
            schemas = field, new_fields[name]
            yield from self.compare_schemas(f"{place}.{name}", *schemas, is_request=is_request)
        if is_request:
            for name in sorted(new_required - old_required):
                yield f"{place}: the field {name} became required."
        else:
            for name in sorted(old_required & set(new_fields) - new_required):
                yield f"{place}: the field {name} is no longer always present."


def compare_bounds(place: str, old: Schema, new: Schema) -> Iterator[str]:
    for name in (*LOWER_BOUNDS, *UPPER_BOUNDS):
        before, now = old.get(name), new.get(name)
        is_narrower = now is not None and (
            before is None or (now > before if name in LOWER_BOUNDS else now < before)
        )
        if is_narrower:
            yield f"{place}: {name} changed from {before} to {now}."
    if new.get("pattern") not in (None, old.get("pattern")):
        yield f"{place}: the pattern changed."
    if "enum" in new and "enum" not in old:
        yield f"{place}: only some values are accepted now."
    for value in old.get("enum", ()):
        if value not in new.get("enum", [value]):
            yield f"{place}: the value {value} is no longer accepted."


def resolve(document: Schema, schema: Schema) -> tuple[str, Schema]:
    """Return the name and the definition of a type, or the schema itself without a name."""
    for each in (schema, *schema.get("allOf", ())):
        if "$ref" in each:
            name = each["$ref"].split("/")[-1]
            return name, document["components"]["schemas"][name]
    return "", schema


def get_types(schema: Schema) -> set[str]:
    found = schema.get("type", ())
    return {found} if isinstance(found, str) else set(found)


def describe_kind(schema: Schema) -> str:
    kinds = [*sorted(get_types(schema)), *filter(None, [schema.get("format")])]
    return " ".join(kinds) or "anything"


def get_statuses(document: Schema, operation: Schema) -> dict[str, str]:
    """Return the HTTP status of each error code."""
    found = {}
    for status, response in operation["responses"].items():
        if "$ref" in response:
            response = document["components"]["responses"][response["$ref"].split("/")[-1]]
        content = response["content"]["application/json"]
        found |= dict.fromkeys(content.get("examples", ()), status) if status != "200" else {}
    return found
