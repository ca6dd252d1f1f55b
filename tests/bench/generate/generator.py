"""Generates accounts, centers and the reservations of each center, in one transaction."""

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
from tests.bench.generate.bookings import ReservationGenerator
from tests.bench.generate.loading import Loader, open_loader
from tests.bench.generate.people import People
from tests.bench.generate.places import SiteGenerator

MODELS: tuple[type[Model], ...] = (
    *(User, ApiToken, SavedCard, SandboxCard, Allowance),
    *(ResourceType, Neighborhood, Center, OpeningHours, Closure, CenterImage, Landmark),
    *(Rate, MeetingRoom, Service, PromoCode),
    *(Reservation, LineItem, Attendee, ChosenService, AllowanceUse, AllowanceEntry),
    *(PromoRedemption, Payment, Refund, SandboxPayment, SandboxRefund),
)
# Reservations were created in this many days before today, most of them lately.
DAYS_BACK = 240
RESERVATIONS_PER_CUSTOMER = 20


def is_empty() -> bool:
    return not (User.objects.exists() or Center.objects.exists())


def generate(
    *, centers: int, reservations: int, seed: int, today: dt.date, report: Callable[[str], object]
) -> int:
    """Fills the database, and returns the number of rows."""
    now = dt.datetime.combine(today, dt.time(), dt.UTC)
    with open_loader(MODELS, report) as load:
        customers = max(20, reservations // RESERVATIONS_PER_CUSTOMER)
        report(f"{customers:,} customers")
        people = People.generate(load, seed=seed, count=customers, today=now)
        sites = SiteGenerator(load, seed=seed, today=now)
        generator = ReservationGenerator(load, people, seed=seed, now=now)
        random = Random(f"{seed} times")
        creation_times = _iterate_creation_times(load, random, reservations, now)
        shares = _distribute_reservations(random, centers, reservations)
        generated, due = 0, 0
        for number, site in enumerate(sites.generate(centers), start=1):
            due += shares[number - 1]
            # The share of a center without bookable rooms goes to the next center.
            if site.rooms:
                generator.generate(site, (next(creation_times) for _ in range(due)))
                generated, due = generated + due, 0
            if number % max(1, centers // 50) == 0:
                report(
                    f"{number:,} of {centers:,} centers, {generated:,} reservations,"
                    f" {load.rows:,} rows"
                )
        generator.finish()
    return load.rows


def _iterate_creation_times(
    load: Loader, random: Random, count: int, now: dt.datetime
) -> Iterator[tuple[int, dt.datetime]]:
    """Yields the id and the creation time of each reservation in random order.

    Later reservations have higher ids.
    """
    seconds = sorted(int(DAYS_BACK * 86400 * random.random() ** 1.5) for _ in range(count))
    before = load.reserve_ids(Reservation, count)
    order = list(range(count))
    random.shuffle(order)
    for each in order:
        yield before + count - each, now - dt.timedelta(seconds=seconds[each] + 60)


def _distribute_reservations(random: Random, centers: int, reservations: int) -> Sequence[int]:
    """The number of reservations of each center: a few centers are busy, many are not."""
    weights = [random.lognormvariate(0, 0.8) for _ in range(centers)]
    drawn = Counter(random.choices(range(centers), weights, k=reservations))
    return [drawn[number] for number in range(centers)]
