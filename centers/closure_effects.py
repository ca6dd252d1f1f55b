"""What planned closures and opening hours affect.

Other apps know that, and this one must not import them: they answer a signal.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.dispatch import Signal

from centers.hours import OpeningInterval
from centers.models import Center, Closure

# Sent with `closures`, which are not saved yet. Receivers return ClosureEffects, or None.
closures_planned = Signal()
# The same with a `center` and its new `opening_hours`.
opening_hours_planned = Signal()


class ClosureEffects(NamedTuple):
    """What is affected, as HTML with links. `key` changes if anything else is affected.

    `url` is the page on which staff resolve it; empty if nothing has to be resolved.
    """

    html: str
    key: str
    url: str


def find_effects(closures: Sequence[Closure]) -> ClosureEffects | None:
    """Return what the closures would affect, or None if that is nothing."""
    return _get_effects(closures_planned.send(Closure, closures=closures))


def find_effects_of_hours(
    center: Center, opening_hours: Sequence[OpeningInterval]
) -> ClosureEffects | None:
    """Return what the new opening hours would affect, or None if that is nothing."""
    answers = opening_hours_planned.send(Center, center=center, opening_hours=opening_hours)
    return _get_effects(answers)


# The stubs say that receivers return text.
def _get_effects(answers: Iterable[tuple[object, object]]) -> ClosureEffects | None:
    return next((each for _, each in answers if isinstance(each, ClosureEffects)), None)
