"""Sends requests to the API, and parses CSV and JSONP responses."""

import csv
import io
import json
import re
from typing import Any


def post(client: Any, path: str, body: dict[str, Any] | None = None, **extra: Any) -> Any:
    """POST a JSON body. Details of a refusal name fields of the operation, and nothing else."""
    response = client.post(
        path, data=json.dumps(body or {}), content_type="application/json", **extra
    )
    view: Any = getattr(response.resolver_match, "func", None)
    if response.status_code == 400 and hasattr(view, "cls") and b'"Details"' in response.content:
        details = re.search(rb'"Details": ?("(?:[^"\\\\]|\\\\.)*")', response.content)
        for line in json.loads(details[1] if details else '""').splitlines():
            require_field(line, {**view.cls.Input.field_tree(), "Idempotency-Key": {}})
    return response


def require_field(line: str, tree: Any) -> None:
    name = re.match(r"([\w.-]+): ", line)
    for part in name[1].split(".") if name else ():
        if not part.isdigit() and part not in {"Token", "AppVersion"}:
            assert part in tree, f"{line}: this is no field of the request"
            tree = tree[part]


def post_csv(client: Any, path: str, row: dict[str, Any], **extra: Any) -> Any:
    """POST a header row and one data row."""
    text = io.StringIO()
    csv.writer(text).writerows([row.keys(), row.values()])
    return client.post(path, data=text.getvalue(), content_type="text/csv", **extra)


def table(response: Any) -> list[list[str]]:
    """Return the rows of a CSV response; the first row is the header."""
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.reader(io.StringIO(response.content.decode(), newline="")))


def jsonp(response: Any, callback: str) -> Any:
    """Return the argument that a JSONP response passes to the callback."""
    assert response["Content-Type"] == "application/javascript; charset=utf-8"
    text = response.content.decode()
    start, end = f"/**/{callback}(", ");"
    assert text.startswith(start)
    assert text.endswith(end)
    return json.loads(text[len(start) : -len(end)])
