"""What planned closures, opening hours and other settings affect.

Other apps know that, and this one must not import them: they answer a signal.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from django.dispatch import Signal

from centers.hours import OpeningInterval
from centers.models import Center, Closure, MeetingRoom

# Sent with `closures`, which are not saved yet. Receivers return ClosureEffects, or None.
closures_planned = Signal()
# The same with a `center` and its new `opening_hours`.
opening_hours_planned = Signal()
# The same with a `row` that is not saved yet, a center or a room, and its `changed` fields.
settings_planned = Signal()
# Sent when a `center` is saved with another zone than `former_zone`: whether what is to come
# `keeps_instants` rather than local times, `by` and `now`. Receivers may raise SlotUnavailable.
time_zone_changed = Signal()
KEPT_TIMES = "With another time zone, bookings and closures keep"
KEPT_TIMES_CHOICES = [
    ("", "their local times (9:00 stays 9:00)"),
    ("instants", "their instants (9:00 becomes another local time)"),
]


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


def find_effects_of_settings(
    row: Center | MeetingRoom, changed: Collection[str]
) -> ClosureEffects | None:
    """Return what a center or a room with these changed fields would affect, or None."""
    columns = {each.name for each in row._meta.concrete_fields}.intersection(changed)
    return _get_effects(settings_planned.send(type(row), row=row, changed=columns))


# The stubs say that receivers return text.
def _get_effects(answers: Iterable[tuple[object, object]]) -> ClosureEffects | None:
    return next((each for _, each in answers if isinstance(each, ClosureEffects)), None)
