"""Check constraints judged in memory, so that thousands of rows cost no query each.

Three-valued as SQL is: a comparison with nothing is unknown, and a check that is not false passes.
"""

import operator
from collections.abc import Callable, Iterator
from typing import Any, cast

from django.db.models import CheckConstraint, F, Model, Q

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "exact": operator.eq,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


def get_violated_checks(instance: Model) -> Iterator[tuple[CheckConstraint, list[str]]]:
    """The checks that a row fails, each with the fields that it is about."""
    for constraint in instance._meta.constraints:
        if not isinstance(constraint, CheckConstraint):
            continue
        condition = constraint.condition
        assert isinstance(condition, Q), "Conditions are Q: others could not be judged here."
        if evaluate_condition(condition, instance) is False:
            yield constraint, list(dict.fromkeys(get_condition_fields(condition)))


def evaluate_condition(node: Q, instance: Model) -> bool | None:
    """True, False, or None for unknown."""
    found = [
        evaluate_condition(child, instance) if isinstance(child, Q) else _compared(child, instance)
        for child in node.children
    ]
    decisive = node.connector == Q.OR
    if decisive in found:
        answer: bool | None = decisive
    else:
        answer = None if None in found else not decisive
    return None if answer is None else answer is not node.negated


def _compared(child: Any, instance: Model) -> bool | None:
    path, wanted = child
    name, _, lookup = path.partition("__")
    value = getattr(instance, name)
    if lookup == "isnull":
        return (value is None) is wanted
    if lookup == "range":
        low, high = (_value(each, instance) for each in wanted)
        return None if None in (value, low, high) else low <= value <= high
    wanted = _value(wanted, instance)
    if value is None or wanted is None:
        return None
    # A lookup that is not listed is a defect of ours, and fails loudly.
    return COMPARE[lookup or "exact"](value, wanted)


def _value(wanted: Any, instance: Model) -> Any:
    # The stubs do not know the name of an F.
    return getattr(instance, cast("Any", wanted).name) if isinstance(wanted, F) else wanted


def get_condition_fields(node: Any) -> Iterator[str]:
    for child in node.children:
        if isinstance(child, Q):
            yield from get_condition_fields(child)
        else:
            yield child[0].partition("__")[0]
