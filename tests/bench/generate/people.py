"""The generated accounts: staff, and customers with a Token, some with a card or an allowance."""

import datetime as dt
import hashlib
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Self

from django.contrib.auth.hashers import make_password

from accounts.models import ApiToken, User
from accounts.models.api_token import hash_token_secret
from accounts.models.search_text import build_search_text
from payments.cards import CardBrand
from payments.models import SandboxCard, SavedCard
from reservations.models import Allowance
from reservations.pricing.allowances import AvailableAllowance
from tests.bench.generate.loading import Loader
from tests.bench.generate.names import COMPANIES, FIRST_NAMES, LAST_NAMES, TRADES

PASSWORD = "quiet-harbour-42"
STAFF_COUNT = 9

CARDS = (
    *((CardBrand.VISA, "4242"),) * 3,
    *((CardBrand.MASTERCARD, "4444"),) * 2,
    (CardBrand.AMERICAN_EXPRESS, "0005"),
)


def get_email_domain(seed: int) -> str:
    return f"seed{seed}.example"


def get_administrator_email(seed: int) -> str:
    return f"admin@{get_email_domain(seed)}"


def get_token(seed: int, number: int) -> str:
    """The Token of the customer with this number (from 1). It depends on the seed only."""
    return hashlib.sha256(f"roombook {seed} {number}".encode()).hexdigest()


@dataclass(slots=True)
class Customer:
    """The data of an account that reservations need."""

    pk: int
    name: str
    email: str
    company: str
    card: tuple[CardBrand, str]
    allowance: Allowance | None
    hours_used: Counter[dt.date]

    def get_available_hours(self, day: dt.date) -> list[AvailableAllowance]:
        """The allowances that a meeting on that day can use."""
        if self.allowance is None:
            return []
        month = day.replace(day=1)
        return [
            AvailableAllowance(
                self.allowance, month, max(0, self.allowance.hours - self.hours_used[month])
            )
        ]


class People:
    """All accounts. Some customers book much more than others."""

    def __init__(self, customers: list[Customer], staff: list[int]) -> None:
        self.customers = customers
        self.staff = staff

    @classmethod
    def generate(cls, load: Loader, *, seed: int, count: int, today: dt.datetime) -> Self:
        random = Random(f"{seed} people")
        # One hash for all, because hashing is slow on purpose.
        password = make_password(PASSWORD, salt=f"generated-{seed}")
        add_user, add_token = load.get_instance_adder(User), load.get_instance_adder(ApiToken)
        joined = today - dt.timedelta(days=500)
        staff = []
        for number in range(STAFF_COUNT + 1):
            user = User(
                email=f"staff{number}@{get_email_domain(seed)}"
                if number
                else get_administrator_email(seed),
                first_name=random.choice(FIRST_NAMES),
                last_name=random.choice(LAST_NAMES),
                is_staff=True,
                is_superuser=not number,
                password=password,
                date_joined=joined,
            )
            user.search_text = build_search_text(user)
            add_user(user)
            staff.append(user.pk)
        possessions = _PossessionFactory(load, random, today)
        customers = []
        for number in range(1, count + 1):
            first, last = random.choice(FIRST_NAMES), random.choice(LAST_NAMES)
            company = ""
            if random.random() < 0.7:
                company = f"{random.choice(COMPANIES)} {random.choice(TRADES)}"
            user = User(
                email=f"{first}.{last}.{number}@{get_email_domain(seed)}".lower(),
                first_name=first,
                last_name=last,
                company_name=company,
                phone_number=f"+1 555 {number // 10000:03} {number % 10000:04}",
                password=password,
                date_joined=joined + dt.timedelta(minutes=random.randrange(120 * 24 * 60)),
            )
            user.search_text = build_search_text(user)
            add_user(user)
            add_token(
                ApiToken(
                    user_id=user.pk,
                    digest=hash_token_secret(get_token(seed, number)),
                    created_at=today,
                    expires_at=today + dt.timedelta(days=30),
                    last_used_at=today,
                )
            )
            customers.append(
                Customer(
                    user.pk,
                    f"{first} {last}",
                    user.email,
                    company,
                    possessions.create_card(user)
                    if random.random() < 0.4
                    else random.choice(CARDS),
                    possessions.create_allowance(user) if random.random() < 0.1 else None,
                    Counter(),
                )
            )
        return cls(customers, staff)

    def choose_customer(self, random: Random) -> Customer:
        return self.customers[int(len(self.customers) * random.random() ** 2)]


class _PossessionFactory:
    """Generates cards and allowances of customers."""

    def __init__(self, load: Loader, random: Random, today: dt.datetime) -> None:
        self.random = random
        self.today = today
        self.add_allowance = load.get_instance_adder(Allowance)
        self.add_saved_card = load.get_instance_adder(SavedCard)
        self.add_sandbox_card = load.get_instance_adder(SandboxCard)

    def create_card(self, user: User) -> tuple[CardBrand, str]:
        brand, last4 = self.random.choice(CARDS)
        reference = f"card_{self.random.getrandbits(96):024x}"
        self.add_sandbox_card(
            SandboxCard(
                reference=reference,
                customer=str(user.pk),
                outcome="succeeds",
                brand=brand,
                last4=last4,
                created_at=self.today,
            )
        )
        self.add_saved_card(
            SavedCard(
                user_id=user.pk,
                gateway="sandbox",
                reference=reference,
                brand=brand,
                last4=last4,
                exp_year=self.today.year + 1 + self.random.randrange(4),
                exp_month=self.random.randint(1, 12),
                first_name=user.first_name,
                last_name=user.last_name,
                company_name=user.company_name,
                has_cvv=True,
                created_at=self.today,
                street1=f"{self.random.randint(1, 900)} Harbour Road",
                city="Denver",
                state="CO",
                postal_code="80205",
                country="US",
            )
        )
        return brand, last4

    def create_allowance(self, user: User) -> Allowance:
        allowance = Allowance(
            user_id=user.pk,
            description="Monthly plan: meeting rooms",
            kind=Allowance.Kind.MONTHLY,
            hours=self.random.choice((2, 4, 8, 16)),
        )
        self.add_allowance(allowance)
        return allowance
