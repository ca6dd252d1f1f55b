"""Everything that is stored about an account, as one JSON document (B22.11).

accounts/personal_data.py says what that is. No copy is stored.
"""

import datetime as dt
from decimal import Decimal
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Manager, Model, QuerySet
from django.db.models.fields.files import FieldFile

from accounts.models import User
from accounts.personal_data import TABLES, Exported
from roombook.images import get_url
from roombook.naming import to_contract_name

Fields = dict[str, Any]

# The rows of a list that a response of the API contains at most.
MAX_ROWS = 5_000


def build_export(user: User, *, for_staff: bool = False) -> Fields | None:
    """Return the document; for staff with what only they see (B18).

    Returns None if one of a customer's lists has more than MAX_ROWS elements.
    """
    lists = _get_lists(user, for_staff=for_staff)
    if not for_staff and any(rows[MAX_ROWS : MAX_ROWS + 1].exists() for rows in lists.values()):
        return None
    parts: Fields = {"Account": user, **lists}
    return {name: _to_plain(part, for_staff=for_staff) for name, part in parts.items()}


def _get_lists(user: User, *, for_staff: bool) -> dict[str, QuerySet[Any]]:
    """Return the lists of the document by their names."""
    lists = {}
    for label, table in TABLES.items():
        part = table.export
        if label == User._meta.label or not isinstance(part, Exported) or not part.name:
            continue
        if part.fields or for_staff:
            rows = part.find(user) if part.find else table.find_rows(label, user)
            lists[part.name] = rows.order_by("pk").prefetch_related(*part.prefetch.split())
    return lists


def _describe(row: Model, *, for_staff: bool) -> Fields:
    """Return the fields of a row."""
    part = TABLES[row._meta.label].export
    assert isinstance(part, Exported)
    fields: Fields = {}
    for each in f"{part.fields} {part.for_staff if for_staff else ''}".split():
        name, _, path = each.rpartition("=")
        fields[name or to_contract_name(path)] = _read(row, path)
    return fields | {name: compute(row) for name, compute in part.computed.items()}


def _read(row: Any, path: str) -> Any:
    for name in path.split("."):
        try:
            row = getattr(row, name)
        except ObjectDoesNotExist:
            return None
        if row is None:
            return None
    return row


def _to_plain(value: Any, *, for_staff: bool) -> Any:
    """Return a value as JSON has it; in objects, without fields that have no value (B2.1, B2.2)."""
    match value:
        case Model():
            return _to_plain(_describe(value, for_staff=for_staff), for_staff=for_staff)
        case Manager() | QuerySet():
            return [_to_plain(each, for_staff=for_staff) for each in value.all()]
        case dict():
            fields = {name: _to_plain(each, for_staff=for_staff) for name, each in value.items()}
            return {name: each for name, each in fields.items() if each not in (None, "")}
        case Decimal():
            return float(value)
        case dt.datetime():
            return value.astimezone(dt.UTC).isoformat(timespec="seconds")
        case dt.date():
            return value.isoformat()
        case FieldFile():
            return get_url(value.name or "")
        case _ if callable(value):
            return value()
    return value
