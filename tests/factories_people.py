"""Factories of accounts, tokens and saved cards."""

import datetime as dt

import factory
from django.contrib.auth.models import Group
from django.utils import timezone

from accounts.models import ApiToken, CenterRole, CodePurpose, EmailCode, User
from accounts.models.tokens import hash_token_secret
from centers.models import Center
from payments.gateways.sandbox_models import SandboxCard, SandboxSetup
from payments.models import PaymentSetup, SavedCard

PASSWORD = "quiet-harbour-42"
CODE = "04711147"


class UserFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = User
        skip_postgeneration_save = True

    email = factory.Sequence(lambda n: f"ada{n}@example.com")
    password = factory.django.Password(PASSWORD)
    first_name = "Ada"
    last_name = "Lovelace"


class StaffFactory(UserFactory):
    email = factory.Sequence(lambda n: f"staff{n}@example.com")
    is_staff = True


class AdministratorFactory(StaffFactory):
    email = factory.Sequence(lambda n: f"root{n}@example.com")
    is_superuser = True


def make_staff_with_role(role: str, *centers: Center) -> User:
    """Create a staff user with a role at the given centers, or at all centers."""
    user, group = StaffFactory.create(), Group.objects.get(name=role)
    if not centers:
        user.groups.add(group)
    for center in centers:
        CenterRole.objects.create(user=user, center=center, group=group)
    return User.objects.get(pk=user.pk)


class SandboxCardFactory(factory.django.DjangoModelFactory):
    class Meta:
        model = SandboxCard

    reference = factory.Sequence(lambda n: f"card_{n}")
    customer = "1"
    outcome = "succeeds"
    brand = "Visa"
    last4 = "4242"


class SavedCardFactory(factory.django.DjangoModelFactory):
    """A card that is stored at the sandbox and can be charged."""

    class Meta:
        model = SavedCard
        exclude = ("outcome", "stored")

    outcome = "succeeds"
    user = factory.SubFactory(UserFactory)
    gateway = "sandbox"
    stored = factory.SubFactory(
        SandboxCardFactory,
        outcome=factory.SelfAttribute("..outcome"),
        brand=factory.SelfAttribute("..brand"),
        last4=factory.SelfAttribute("..last4"),
    )
    reference = factory.LazyAttribute(lambda card: card.stored.reference)
    brand = "Visa"
    last4 = "4242"
    exp_year = factory.LazyFunction(lambda: timezone.now().year + 3)
    exp_month = 9
    first_name = "Ada"
    last_name = "Lovelace"
    has_cvv = True
    street1 = "1 Main Street"
    city = "Denver"
    state = "CO"
    postal_code = "80202"
    country = "US"
    created_at = factory.LazyFunction(timezone.now)


def issue_token(user: User, *, age: dt.timedelta = dt.timedelta(0)) -> str:
    """A Token of a sign-in that long ago, which has not been used since."""
    now = timezone.now()
    secret = ApiToken.issue(user, now=now - age)
    assert ApiToken.objects.filter(digest=hash_token_secret(secret)).exists()
    return secret


def make_email_code(
    purpose: CodePurpose, email: str, user: User | None, code: str = CODE
) -> EmailCode:
    """Save a code that was just sent."""
    row = EmailCode(
        purpose=purpose,
        email=email,
        user=user,
        expires_at=timezone.now() + dt.timedelta(minutes=30),
    )
    row.set_code(code)
    row.save()
    return row


def make_entered_setup(
    user: User, *, now: dt.datetime, key: str = "0e5cb2a8-0f6b-4f7b-8f0e-6a7d8c9b0a11"
) -> str:
    """The id of a payment setup for which the customer has entered a card."""
    in_an_hour = now + dt.timedelta(hours=1)
    setup = PaymentSetup.objects.create(
        user=user,
        key=key,
        gateway="sandbox",
        reference="setup_1",
        created_at=now,
        expires_at=in_an_hour,
    )
    SandboxSetup.objects.create(
        key=setup.key,
        reference=setup.reference,
        customer=str(user.pk),
        state="succeeded",
        card_reference=SandboxCardFactory.create().reference,
        exp_year=2031,
        exp_month=2,
        expires_at=in_an_hour,
    )
    return key
