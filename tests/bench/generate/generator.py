"""Makes it all, in one transaction: people, centers, and the reservations of each center."""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random

from django.db.models import Model

from accounts.models import ApiToken, User
from centers.models import (
    Center,
    CenterImage,
    Closure,
    Landmark,
    MeetingRoom,
    Neighborhood,
    OpeningHours,
    Rate,
    ResourceType,
    Service,
)
from payments.gateways.sandbox_models import SandboxCard, SandboxPayment, SandboxRefund
from payments.models import Payment, Refund, SavedCard
from reservations.generate.bookings import Bookings
from reservations.generate.loading import Loader, loading
from reservations.generate.people import People
from reservations.generate.places import Sites
from reservations.models import (
    Allowance,
    AllowanceEntry,
    AllowanceUse,
    Attendee,
    ChosenService,
    LineItem,
    PromoCode,
    PromoRedemption,
    Reservation,
)

MODELS: tuple[type[Model], ...] = (
    *(User, ApiToken, SavedCard, SandboxCard, Allowance),
    *(ResourceType, Neighborhood, Center, OpeningHours, Closure, CenterImage, Landmark),
    *(Rate, MeetingRoom, Service, PromoCode),
    *(Reservation, LineItem, Attendee, ChosenService, AllowanceUse, AllowanceEntry),
    *(PromoRedemption, Payment, Refund, SandboxPayment, SandboxRefund),
)
# Reservations were made in so many days up to today, and more and more of them.
DAYS_BACK = 240
RESERVATIONS_A_CUSTOMER = 20


def is_empty() -> bool:
    return not (User.objects.exists() or Center.objects.exists())


def make(
    *, centers: int, reservations: int, seed: int, today: dt.date, tell: Callable[[str], object]
) -> int:
    """Fill the database, and return how many rows that took."""
    now = dt.datetime.combine(today, dt.time(), dt.UTC)
    with loading(MODELS, tell) as load:
        customers = max(20, reservations // RESERVATIONS_A_CUSTOMER)
        tell(f"{customers:,} customers")
        people = People.make(load, seed=seed, count=customers, today=now)
        sites = Sites(load, seed=seed, today=now)
        bookings = Bookings(load, people, seed=seed, now=now)
        random = Random(f"{seed} moments")
        moments = _moments(load, random, reservations, now)
        shares = _shares(random, centers, reservations)
        made, owed = 0, 0
        for number, site in enumerate(sites.make(centers), start=1):
            owed += shares[number - 1]
            # A center without a room that can be booked leaves its share to the next one.
            if site.rooms:
                bookings.make(site, (next(moments) for _ in range(owed)))
                made, owed = made + owed, 0
            if number % max(1, centers // 50) == 0:
                tell(
                    f"{number:,} of {centers:,} centers, {made:,} reservations, {load.rows:,} rows"
                )
        bookings.finish()
    return load.rows


def _moments(
    load: Loader, random: Random, count: int, now: dt.datetime
) -> Iterator[tuple[int, dt.datetime]]:
    """The id of each reservation and when it was made, in an order of chance: later ones have
    higher ids, in whatever center they are."""
    seconds = sorted(int(DAYS_BACK * 86400 * random.random() ** 1.5) for _ in range(count))
    before = load.take_ids(Reservation, count)
    order = list(range(count))
    random.shuffle(order)
    for each in order:
        yield before + count - each, now - dt.timedelta(seconds=seconds[each] + 60)


def _shares(random: Random, centers: int, reservations: int) -> Sequence[int]:
    """How many reservations each center has: a few are busy, many are not."""
    weights = [random.lognormvariate(0, 0.8) for _ in range(centers)]
    drawn = Counter(random.choices(range(centers), weights, k=reservations))
    return [drawn[number] for number in range(centers)]
