"""Evaluate check constraints in memory: Django's own `validate` runs a query for each row.

Three-valued like SQL: a comparison with NULL is unknown, and a check passes unless it is false.
"""

import operator
from collections.abc import Callable, Iterator
from typing import Any, cast

from django.db.models import CheckConstraint, F, Model, Q

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "exact": operator.eq,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


def get_violated_checks(instance: Model) -> Iterator[tuple[CheckConstraint, list[str]]]:
    """The check constraints that a row violates, each with the names of its fields."""
    for constraint in instance._meta.constraints:
        if not isinstance(constraint, CheckConstraint):
            continue
        condition = constraint.condition
        assert isinstance(condition, Q), "Only conditions that are Q objects can be evaluated."
        if evaluate_condition(condition, instance) is False:
            yield constraint, list(dict.fromkeys(get_condition_fields(condition)))


def evaluate_condition(node: Q, instance: Model) -> bool | None:
    """True, False, or None for unknown."""
    results = [
        evaluate_condition(child, instance) if isinstance(child, Q) else _compare(child, instance)
        for child in node.children
    ]
    decisive = node.connector == Q.OR
    if decisive in results:
        result: bool | None = decisive
    else:
        result = None if None in results else not decisive
    return None if result is None else result is not node.negated


def _compare(child: Any, instance: Model) -> bool | None:
    path, operand = child
    name, _, lookup = path.partition("__")
    value = getattr(instance, name)
    if lookup == "isnull":
        return (value is None) is operand
    if lookup == "range":
        low, high = (_resolve(each, instance) for each in operand)
        return None if None in (value, low, high) else low <= value <= high
    operand = _resolve(operand, instance)
    if value is None or operand is None:
        return None
    # A KeyError here is a bug: a constraint uses a lookup that is not supported yet.
    return COMPARISONS[lookup or "exact"](value, operand)


def _resolve(operand: Any, instance: Model) -> Any:
    # django-stubs does not declare the name of an F.
    return getattr(instance, cast("Any", operand).name) if isinstance(operand, F) else operand


def get_condition_fields(node: Any) -> Iterator[str]:
    for child in node.children:
        if isinstance(child, Q):
            yield from get_condition_fields(child)
        else:
            yield child[0].partition("__")[0]
