"""The demo accounts and what belongs to them: roles, favorites, a saved card."""

import datetime as dt

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, Permission

from accounts.models import CenterRole, User
from centers.models import Center, Favorite
from payments.cards import CardFields
from payments.saved_cards import update_saved_card
from reservations.demo.data_files import read_json

DATA = read_json("accounts.json")
PASSWORD: str = DATA["password"]
EMAILS: list[str] = [account["email"] for account in DATA["accounts"]]
DEMO, GUEST, STAFF, MANAGER, *_ = EMAILS
# Customers of the working days. They do not sign in.
CUSTOMER_EMAILS: list[str] = [customer["email"] for customer in DATA["customers"]]
CUSTOMERS_SINCE = dt.timedelta(days=90)
ROLES_CENTER: str = DATA["roles_center"]

# The apps in which the staff account may do everything.
MANAGED_APPS = ("accounts", "backoffice", "centers", "payments", "reservations")


def create_accounts() -> None:
    """Create them without a password, which `open_accounts` gives them when all else is loaded."""
    for account in DATA["accounts"]:
        User.objects.create_user(**account)
    permissions = Permission.objects.filter(content_type__app_label__in=MANAGED_APPS)
    User.objects.get(email=STAFF).user_permissions.set(permissions)
    center = Center.objects.get(name=ROLES_CENTER)
    for email, role in DATA["roles"].items():
        CenterRole.objects.create(
            user=User.objects.get(email=email), center=center, group=Group.objects.get(name=role)
        )
    for name in DATA["favorites"]:
        user = User.objects.get(email=DEMO)
        Favorite.objects.set_favorite(user, Center.objects.get(name=name), is_favorite=True)


def open_accounts() -> None:
    User.objects.filter(email__in=EMAILS).update(password=make_password(PASSWORD))


def are_closed() -> bool:
    user = User.objects.filter(email=DEMO).first()
    return user is not None and not user.has_usable_password()


def create_customers(*, now: dt.datetime) -> None:
    """Create the customers of the working days. They have no password, which takes time to hash."""
    for customer in DATA["customers"]:
        User.objects.create(**customer)
    rows = User.objects.filter(email__in=CUSTOMER_EMAILS)
    rows.update(date_joined=now - CUSTOMERS_SINCE)


def save_card(*, now: dt.datetime) -> None:
    """Save a test card for the demo account. Calls the gateway: no transaction may be open."""
    user = User.objects.get(email=DEMO)
    update_saved_card(user, get_card(user, now), now=now)


def get_card(user: User, now: dt.datetime) -> CardFields:
    """Return a test card that Stripe documents. The sandbox accepts it and charges nobody."""
    return {
        "first_name": user.first_name,
        "last_name": user.last_name,
        "company_name": user.company_name,
        "expiration_date": dt.datetime(now.year + 3, 9, 30, tzinfo=dt.UTC),
        "credit_card_number": DATA["card"]["credit_card_number"],
        "security_code": DATA["card"]["security_code"],
        "billing_address": DATA["card"]["billing_address"],
    }
