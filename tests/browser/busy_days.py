"""Creates some busy days at the first demo center, for screenshots.

Run it as a program, on a database with demo data: `python -m tests.browser.busy_days`.
"""

import datetime as dt
import os
import random
from contextlib import suppress

import django

SEED = 7
CUSTOMERS = (
    ("Amara", "Osei", "Osei & Partners"),
    ("Bruno", "Keller", "Keller Timber"),
    ("Chiara", "Lombardi", "Studio Lombardi"),
    ("Devika", "Rao", "Northlight Games"),
    ("Elias", "Haddad", "Haddad Legal"),
    ("Freya", "Nilsen", "Fjord Insurance"),
    ("Grace", "Mwangi", "Mwangi Architects"),
    ("Hugo", "Martín", "Casa Martín"),
)
PAID = 0.85
DAYS = range(-4, 7)
# Local hours at which meetings begin, and how long they last.
MEETINGS = ((9, 1.5), (9, 3), (11, 2), (13, 2.5), (14, 1), (15.5, 1.5))


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "roombook.settings")
    django.setup()
    # Models can be imported only after django.setup().
    from django.utils import timezone

    from accounts.models import User
    from centers.models import MeetingRoom
    from reservations.booking.checkout import check_out
    from reservations.booking.drafts import create_draft
    from reservations.demo.accounts import ROLES_CENTER, STAFF
    from roombook.errors import DomainError
    from tests.factories_reservations import make_payment_method

    chance = random.Random(SEED)
    now = timezone.now()
    users = [
        User.objects.create_user(
            f"{first.lower()}@customers.example",
            first_name=first,
            last_name=last,
            company_name=company,
        )
        for first, last, company in CUSTOMERS
    ]
    rooms = list(MeetingRoom.objects.filter(center__name=ROLES_CENTER).select_related("center"))
    for offset in DAYS:
        if offset == 1:
            # From now on one room needs approval.
            MeetingRoom.objects.filter(pk=rooms[-1].pk).update(is_live_inventory=False)
        for room in rooms:
            day = now.astimezone(room.center.zone).date() + dt.timedelta(offset)
            for begins, hours in chance.sample(MEETINGS, 2):
                midnight = dt.datetime.combine(day, dt.time())
                start = midnight + dt.timedelta(hours=begins)
                made = now - dt.timedelta(hours=120 if offset < 1 else chance.randint(1, 40))
                with suppress(DomainError):
                    draft = create_draft(
                        user := chance.choice(users),
                        room_id=room.pk,
                        start=start,
                        end=start + dt.timedelta(hours=hours),
                        number_of_attendees=min(room.capacity, chance.randint(2, 8)),
                        now=made,
                    )
                    # Some stay drafts.
                    if offset < 1 or chance.random() < PAID:
                        check_out(
                            draft.pk, user=user, payment_method=make_payment_method(), now=made
                        )
    # The user of the screenshots sees every page.
    User.objects.filter(email=STAFF).update(is_superuser=True)


if __name__ == "__main__":
    main()
