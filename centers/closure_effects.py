"""What planned closures affect.

Other apps know that, and this one must not import them: they answer a signal.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.dispatch import Signal

from centers.models import Closure

# Sent with `closures`, which are not saved yet. Receivers return ClosureEffects, or None.
closures_planned = Signal()


class ClosureEffects(NamedTuple):
    """What is affected, as HTML with links. `key` changes if anything else is affected.

    `url` is the page on which staff resolve it; empty if nothing has to be resolved.
    """

    html: str
    key: str
    url: str


def find_effects(closures: Sequence[Closure]) -> ClosureEffects | None:
    """Return what the closures would affect, or None if that is nothing."""
    # The stubs say that receivers return text.
    answers: Iterable[tuple[object, object]] = closures_planned.send(Closure, closures=closures)
    for _, effects in answers:
        if isinstance(effects, ClosureEffects):
            return effects
    return None
