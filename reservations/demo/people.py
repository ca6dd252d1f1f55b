"""The demo accounts and what is theirs: hours, favorites, a saved card; codes and a partner."""

import datetime as dt
from decimal import Decimal
from typing import Any

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, Permission

from accounts.models import CenterRole, User
from centers.actions import set_favorite
from centers.models import Center, ResourceType
from payments.saved_cards import update_saved_card
from reservations.models import Allowance, Partner, PromoCode

PASSWORD = "quiet-harbour-42"
DEMO = "demo@roombook.example"
GUEST = "guest@roombook.example"
STAFF = "staff@roombook.example"
# A member of staff for each role, at one center: what each sees there, and that it sees no other.
ROLES = {
    "Manager": ("manager@roombook.example", "Mara", "Whitfield"),
    "Desk": ("desk@roombook.example", "Idris", "Bello"),
    "Viewer": ("viewer@roombook.example", "Lena", "Fischer"),
}
ROLES_AT = "Union Station"
EMAILS = (DEMO, GUEST, STAFF, *(email for email, _, _ in ROLES.values()))

OUR_APPS = ("accounts", "auditlog", "centers", "payments", "reservations")
FAVORITES = ("Union Station", "Back Bay", "Finsbury Square")

# A test number that Stripe documents: the sandbox takes it, and nobody is charged.
TEST_CARD = "4242424242424242"


def make_demo_account() -> bool:
    """Make the first account, and say whether it is new.

    Of two runs at once, the second waits here for the first, and then sees that it came second.
    """
    _, is_new = User.objects.get_or_create(
        email=DEMO,
        defaults={
            "first_name": "Dana",
            "last_name": "Moreno",
            "company_name": "Quiet Harbour Design",
            "phone_number": "+1 303 555 0142",
            # Hashed here: a password that is set later is a change, with a mail about it.
            "password": make_password(PASSWORD),
        },
    )
    return is_new


def make_other_accounts() -> None:
    User.objects.create_user(
        GUEST,
        PASSWORD,
        first_name="Goran",
        last_name="Eriksen",
        company_name="Eriksen & Daughters",
        phone_number="+1 617 555 0170",
    )
    staff = User.objects.create_user(
        STAFF, PASSWORD, first_name="Sam", last_name="Okafor", is_staff=True
    )
    staff.user_permissions.set(Permission.objects.filter(content_type__app_label__in=OUR_APPS))
    center = Center.objects.get(name=ROLES_AT)
    for role, (email, first_name, last_name) in ROLES.items():
        user = User.objects.create_user(
            email, PASSWORD, first_name=first_name, last_name=last_name, is_staff=True
        )
        CenterRole.objects.create(user=user, center=center, group=Group.objects.get(name=role))


def make_belongings(*, now: dt.datetime) -> None:
    """Allowances and favorites of the demo account; promo codes; the partner."""
    demo = User.objects.get(email=DEMO)
    today = now.date()
    plan = Allowance.objects.create(
        user=demo,
        description="Monthly plan: meeting rooms",
        kind=Allowance.Kind.MONTHLY,
        hours=4,
    )
    plan.room_types.set(ResourceType.objects.filter(name="Meeting room"))
    Allowance.objects.create(
        user=demo,
        description="Welcome hours",
        kind=Allowance.Kind.ONE_OFF,
        hours=10,
        valid_from=today - dt.timedelta(60),
        valid_until=today + dt.timedelta(300),
        is_automatic=False,
    )
    for name in FAVORITES:
        set_favorite(demo, Center.objects.get(name=name), is_favorite=True)
    PromoCode.objects.create(
        code="WELCOME10", description="10 percent off for everybody", percent=Decimal(10)
    )
    PromoCode.objects.create(
        code="EXPIRED",
        description="Was good until last month",
        percent=Decimal(20),
        valid_until=now - dt.timedelta(30),
    )
    PromoCode.objects.create(
        code="ONCE", description="$25 off, once in all", amount=Decimal(25), max_uses=1
    )
    Partner.objects.create(code="ACME", name="Acme Travel")


def make_saved_card(*, now: dt.datetime) -> None:
    """Keep a test card for the demo account. Asks the gateway: no transaction may be open."""
    demo = User.objects.get(email=DEMO)
    if demo.saved_payment_info is None:
        update_saved_card(demo, card_of(demo, now), now=now)


def card_of(user: User, now: dt.datetime) -> dict[str, Any]:
    """The test card as a client supplies it."""
    return {
        "first_name": user.first_name,
        "last_name": user.last_name,
        "company_name": user.company_name,
        "credit_card_number": TEST_CARD,
        "security_code": "123",
        "expiration_date": dt.datetime(now.year + 3, 9, 30, tzinfo=dt.UTC),
        "billing_address": {
            "street1": "88 Harbour Road",
            "street2": "Apt 5",
            "city": "Denver",
            "state": "CO",
            "postal_code": "80205",
            "country": "US",
        },
    }
