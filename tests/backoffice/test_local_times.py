"""Times on pages that belong to no center: customers, e-mails, saved cards, the audit log (B18)."""

import datetime as dt
from uuid import uuid4

import pytest
from django.urls import reverse

from accounts.models import ApiToken, OutboxMessage, User
from payments.models import UnknownPayment
from tests.backoffice.reading import words
from tests.factories_people import SavedCardFactory, StaffFactory, UserFactory
from tests.factories_reservations import NOW, make_room

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

# 16:00 in UTC.
IN_DENVER, IN_UTC = "Mon 2027-03-01 09:00 MST", "Mon 2027-03-01 16:00 UTC"


def list_pages(office):
    """The lists and pages that show a time; each of their rows has the time NOW."""
    ada = UserFactory()
    grace = StaffFactory()
    User.objects.update(last_login=NOW, date_joined=NOW)
    ApiToken.objects.create(
        user=ada, digest="x", created_at=NOW, last_used_at=NOW, expires_at=NOW + dt.timedelta(9)
    )
    card = SavedCardFactory(user=ada, created_at=NOW)
    email = OutboxMessage.objects.create(
        to="ada@example.com", kind="test", created_at=NOW, next_attempt_at=NOW
    )
    unknown = UnknownPayment.objects.create(
        gateway="sandbox", key=uuid4(), amount=75, currency="USD", found_at=NOW
    )
    office.post(reverse("admin:accounts_user_change", args=[ada.pk]), {"company_name": "Navy"})
    for name, pk, pages in (
        ("accounts_user", ada.pk, ("changelist", "change", "history", "sign_out")),
        ("accounts_staffmember", grace.pk, ("changelist", "change")),
        ("accounts_outboxmessage", email.pk, ("changelist", "change")),
        ("payments_savedcard", card.pk, ("changelist", "change")),
        ("payments_unknownpayment", unknown.pk, ("changelist", "change")),
    ):
        for page in pages:
            yield reverse(f"admin:{name}_{page}", args=[] if page == "changelist" else [pk])


def test_times_are_those_of_the_time_zone_that_all_own_centers_share_or_utc(office):
    for _ in range(2):
        make_room()

    urls = list(list_pages(office))
    for url in urls:
        text = words(office.get(url))
        assert IN_DENVER in text, url
        assert "16:00" not in text, url
    log = words(office.get(reverse("admin:backoffice_auditentry_changelist")))
    assert "Mon 2027-03-01 09:00:00 MST" in log
    make_room(time_zone_id="Pacific/Auckland")
    for url in urls:
        assert IN_UTC in words(office.get(url)), url
