"""The world of replay.py, and its requests, made from a fixed seed.

A scenario is a list of requests that are sent one after the other to the same world.
"""

import csv
import io
import json
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any
from unittest.mock import patch

from django.db import OperationalError
from django.urls import resolve

from roombook.api import csv_table
from tests.contract.schema import ALL_OPERATIONS, iterate_paths
from tests.contract.tables import OperationSchema
from tests.factories_people import UserFactory, issue_token
from tests.world import NOW, World
from tests.wrong_values import CELLS, DATES, UNREADABLE, VALUES, build_valid_body, replace_value

REQUESTS = 10_000
JSON, CSV = "application/json", "text/csv"
# The suffix of the path, the query, and the header Accept, if it is sent.
FORMATS = [
    *[("", "")] * 8,
    *[(".json", "", CSV), (".csv", ""), (".csv", "format=json"), ("", "format=csv", JSON)],
    *[("", "format=json"), ("", "format=xml"), ("", "format="), ("", "format=csv&format=json")],
    *[("", "", CSV), ("", "", f"{CSV};q=0.5, {JSON};q=0.4"), ("", "", "*/*"), ("", "", "")],
    *[("", "", "application/*"), ("", "", "text/*;q=0.1"), ("", "", "text/html")],
    *[("", "", f"{CSV};q=2, {JSON};q=x"), ("", "", f"{JSON};q=0, text/*")],
    *[("", "callback=app.done"), ("", "callback=f", "text/javascript"), ("", "callback=f(1)")],
    *[(".json", "callback=a-b"), (".csv", "callback=f"), ("", "callback=")],
    *[("", "callback=f", f"application/javascript;q=0.3, {CSV}"), ("", "Format=csv")],
]
CHARSETS = ["utf-8", "UTF-16", "latin-1", "utf-8-sig", "cp037", "ascii", "nonsense", "utf-32-be"]
HOSTILE_CHARSETS = ["zlib", "undefined", "idna", "a\0b", "unicode_escape", "rot13", "x" * 300]
MEDIA_TYPES = [
    *("", "text/plain", "application/xml", "*/*", "application/json5", "json", "text/json"),
    *("multipart/form-data; boundary=x", "application/x-www-form-urlencoded"),
]
BODIES = [
    *("", " ", "{}", "[]", "null", "1", '"a"', "{", "{}{}", '{"a":1,"a":2}', "{'a':1}", "\ufeff{}"),
    *('{"a":NaN}', "[" * 40, '{"a":' * 40, '{"a":1e999}', '{"a":"\\ud8"}', "Id\n", "Id\n1\n2\n"),
    *("Id,Id\n1,2\n", 'Id\n"1\n', "Id,\n1,2\n", "A.B,A\n1,2\n", "\ufeffId\r\n1\r\n", "Id\n1,2\n"),
    *("{" + " " * 262_143 + "}", "Id\n" + "1" * 262_144, ",".join(map(str, range(600))) + "\n1"),
]
PATHS = ["/api", "/api/", "/api/nothing", "{}/", "{}.xml", "{}.CSV", "/api/nothing.csv", "//api/x"]
METHODS = ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "post", "TRACE"]
ENVIRON: list[dict[str, Any]] = [
    *({"HTTP_CONTENT_ENCODING": "gzip"}, {"HTTP_CONTENT_ENCODING": "identity"}),
    *({"CONTENT_LENGTH": length} for length in ("100000", "262145", "-1", "x", "2", "")),
    {"CONTENT_LENGTH": "", "wsgi.input_terminated": True},
    *({"HTTP_HOST": "elsewhere.example"}, {"HTTP_ACCEPT_ENCODING": "gzip"}),
]
APP_VERSIONS = ["1", "1.9.9", "2.0", "2", "2.10.0", "beta", "", 3, "9" * 256, "1\x00", [], {}]
SETTINGS: list[dict[str, Any]] = [
    *({"MINIMUM_APP_VERSION": "2.0"}, {"CARD_NUMBERS": "refuse"}),
    {"PUBLIC_URL": "https://rooms.example.com"},
]
LATER = [1, 60, 16 * 60, 3600, 86_400, 10 * 86_400, 36 * 86_400]
# The kinds of scenarios, with their weights.
KINDS = {
    **dict.fromkeys(["valid", "wrong values", "csv"], 6),
    **dict.fromkeys(["missing fields", "foreign ids", "repeated", "sequence"], 2),
    **dict.fromkeys(["token", "unreadable", "odd body", "other type", "charset", "method"], 1),
    **dict.fromkeys(["path", "environ", "app version", "fault"], 1),
    "hostile charset": 0.3,
}


def build_world(clock: Any, seed: Callable[[str], None]) -> World:
    """Return the world of all tests, with Tokens that depend on nothing else that is random."""
    clock.move_to(NOW.timestamp())
    seed("world")
    world: Any = World(client=None)
    for name, user in (("Ada", world.ada), ("Bob", world.bob), ("Eve", UserFactory())):
        seed(name)
        setattr(world, f"token_of_{name.lower()}", issue_token(user))
    world.access_key = world.webhook.issue_access_key()
    world.foreign_rows = [world.bobs_reservation, world.other_center, world.other_service]
    world.foreign_rows += [world.bob, world.allowances[2], world.other_center.rooms.get()]
    return world


def break_operation(path: str, fault: str) -> AbstractContextManager[Any]:
    """Let an operation fail after its fields were checked."""
    if not fault:
        return nullcontext()
    error = OperationalError if fault == "database" else ZeroDivisionError
    view: Any = resolve(path).func
    return patch.object(view.cls, "perform", side_effect=error)


def build_scenarios(world: World) -> Iterator[dict[str, Any]]:
    maker, number = ScenarioMaker(world), 0
    while number < REQUESTS:
        for operation in ALL_OPERATIONS:
            scenario = maker.make_scenario(operation)
            number += len(scenario["requests"])
            yield scenario


class ScenarioMaker:
    def __init__(self, world: Any) -> None:
        self.world = world
        self.random = random.Random(20270301)
        self.choose = self.random.choice

    def make_scenario(self, operation: OperationSchema) -> dict[str, Any]:
        [kind] = self.random.choices([*KINDS], [*KINDS.values()])
        later = self.choose([0, *LATER])
        if kind == "sequence":
            sent = [operation, *self.random.sample(ALL_OPERATIONS, 3), operation]
            requests = [self.make_request(each, "valid", later) for each in sent]
        elif kind == "repeated":
            first = self.make_request(operation, "valid")
            first["environ"]["HTTP_IDEMPOTENCY_KEY"] = self.choose(["a key", "k", "é", "k" * 256])
            again = {**first, "time": first["time"] + later}
            other = self.make_request(operation, "wrong values")
            requests = [first, again, {**again, "body": other["body"]}]
        else:
            requests = [self.make_request(operation, kind)]
        return {
            "kind": kind,
            "requests": requests,
            "settings": self.choose(SETTINGS) if self.random.random() < 0.15 else {},
            "fault": self.choose(["database", "defect"]) if kind == "fault" else "",
        }

    def make_request(self, operation: OperationSchema, kind: str, later: int = 0) -> dict[str, Any]:
        suffix, query, *accept = self.choose(FORMATS)
        path, method, media_type, charset = operation.path + suffix, "POST", JSON, "utf-8"
        headers: dict[str, Any] = {"HTTP_ACCEPT": accept[0]} if accept else {}
        body: Any = self.make_body(operation, kind)
        match kind:
            case "csv":
                media_type, body = CSV, self.make_csv(operation, body)
            case "unreadable":
                body = json.dumps({**body, "AppVersion": "MARK"})
                body = body.replace('"MARK"', self.choose(UNREADABLE))
            case "odd body":
                body, media_type = self.choose(BODIES), self.choose([JSON, CSV, "Text/CSV; a=b"])
            case "other type":
                body, media_type = self.choose(["", "a=1", "{}"]), self.choose(MEDIA_TYPES)
            case "charset":
                charset = self.choose(CHARSETS)
                named = charset if self.random.random() < 0.7 else self.choose(CHARSETS)
                media_type, charset = (
                    f"{JSON}; charset={named}",
                    charset.replace("nonsense", "utf-8"),
                )
            case "hostile charset":
                media_type = f"{JSON}; charset={self.choose(HOSTILE_CHARSETS)}"
            case "method":
                method = self.choose(METHODS)
            case "path":
                path = self.choose(PATHS).format(operation.path)
            case "environ":
                headers |= self.choose(ENVIRON)
        text = body if isinstance(body, str) else json.dumps(body)
        return {
            "method": method,
            "path": path,
            "query": query,
            "environ": {"CONTENT_TYPE": media_type, "HTTP_X_REQUEST_ID": "replayed", **headers},
            "body": text.encode(charset, "xmlcharrefreplace").decode("latin-1"),
            "time": NOW.timestamp() + later,
        }

    def make_body(self, operation: OperationSchema, kind: str) -> dict[str, Any]:
        path, type_name = self.choose_path(operation)
        body = build_valid_body(self.world, operation, path)
        if operation.needs_token:
            # An account that is in use cannot be deleted.
            is_ada = operation.name != "Delete account"
            body["Token"] = self.world.token_of_ada if is_ada else self.world.token_of_eve
        match kind:
            case "wrong values":
                body = self.replace(body, path, type_name)
                for _ in range(self.choose([0, 0, 0, 1, 5])):
                    body = self.replace(body, *self.choose_path(operation))
            case "missing fields":
                body = {each: body[each] for each in body if self.random.random() < 0.7}
            case "token":
                tokens = [self.world.token_of_bob, "", " ", None, "0" * 40, 1, "x" * 300, "é"]
                body["Token"] = self.choose(tokens)
            case "foreign ids":
                ids = [999_999, *(each.pk for each in self.world.foreign_rows)]
                for each, type_name in iterate_paths(operation.request):
                    if type_name == "int" and each.endswith("Id"):
                        body = replace_value(body, each, self.choose(ids))
            case "app version":
                body["AppVersion"] = self.choose(APP_VERSIONS)
        return body

    def choose_path(self, operation: OperationSchema) -> tuple[str, str]:
        return self.choose([*iterate_paths(operation.request), ("Token", "string")])

    def replace(self, body: dict[str, Any], path: str, type_name: str) -> dict[str, Any]:
        values = [*VALUES, *[None] * 3, *(DATES if type_name == "DateTime" else [])]
        # Another value may have replaced the object.
        with suppress(KeyError, TypeError, IndexError):
            return replace_value(body, path, self.choose(values))
        return body

    def make_csv(self, operation: OperationSchema, body: dict[str, Any]) -> str:
        cells = {csv_table.join_path(path): text for path, text in csv_table.iterate_leaves(body)}
        if self.random.random() < 0.7:
            path, type_name = self.choose_path(operation)
            cells = {name: cell for name, cell in cells.items() if not name.startswith(path)}
            cells[path] = self.choose([*CELLS, *(DATES if type_name == "DateTime" else [])])
        text = io.StringIO()
        csv.writer(text).writerows([cells.keys(), cells.values()])
        return text.getvalue()
