"""Makes the demo in an empty database, and leaves every other database alone (B20)."""

import datetime as dt

from accounts.models import User
from centers.models import Center
from reservations.demo import bookings, people, places
from reservations.demo.places import Tell
from reservations.demo.world import CENTERS
from roombook.db.transactions import in_transaction


class RealData(Exception):
    """The database holds accounts or centers that are not the demo's; it says how many."""


def make(*, now: dt.datetime, tell: Tell) -> bool:
    """Make what is missing, and say whether anything was: after a run that was broken off, the
    rest. Raises RealData where the database holds anything else."""
    if is_complete():
        return False
    refuse_real_data()
    _make_world(now, tell)
    # From here on the gateway is asked, which must not happen inside a transaction.
    people.make_saved_card(now=now)
    bookings.make(now=now, tell=tell)
    return True


def is_complete() -> bool:
    return bookings.are_made()


def is_empty() -> bool:
    """Whether nobody and nothing is there yet."""
    return not (User.objects.exists() or Center.objects.exists())


def refuse_real_data() -> None:
    users = User.objects.exclude(email__in=people.EMAILS).count()
    centers = Center.objects.exclude(name__in=[each.name for each in CENTERS]).count()
    found = [
        f"{count} {thing}{'' if count == 1 else 's'}"
        for count, thing in ((users, "account"), (centers, "center"))
        if count
    ]
    if found:
        raise RealData(f"{' and '.join(found)} that {_are(users + centers)} not the demo's")


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


@in_transaction
def _make_world(now: dt.datetime, tell: Tell) -> None:
    """Places and people, all of them or none."""
    if not people.make_demo_account():
        return
    places.make(now=now, tell=tell)
    people.make_other_accounts()
    people.make_belongings(now=now)
