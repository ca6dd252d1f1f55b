"""Searches of lists reveal no address or phone number of an account that staff may not view."""

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from accounts.models import OutboxMessage
from payments.models import Payment
from reservations.models.status import Status
from tests.backoffice.counting import queries_of
from tests.backoffice.many import many
from tests.factories_people import (
    AdministratorFactory,
    SavedCardFactory,
    StaffFactory,
    UserFactory,
)
from tests.factories_reservations import NOW, make_booking, make_draft, make_room

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

ADDRESSES = ("5550111", "grace@", "hopper 0111")
GRACE = {
    "email": "grace@navy.example",
    "first_name": "Grace",
    "last_name": "Hopper",
    "phone_number": "+1 720 555 0111",
}


def find(client, name, words):
    page = client.get(reverse(f"admin:{name}_changelist"), {"q": words})
    return list(page.context["cl"].result_list)


@pytest.mark.parametrize("role", ["Viewer", "Desk", "Manager"])
def test_search_of_reservations_matches_a_hidden_account_by_name_only(client, staff, role):
    room, grace = make_room(), UserFactory(**GRACE)
    draft = make_draft(grace, room)
    make_booking(grace, make_room())
    client.force_login(staff(role, room.center))

    assert find(client, "reservations_reservation", "hopp") == [draft]
    for words in ADDRESSES:
        assert find(client, "reservations_reservation", words) == [], words

    draft.booked_at = NOW
    draft.save(update_fields=["booked_at"])
    for words in ADDRESSES:
        assert find(client, "reservations_reservation", words) == (
            [] if role == "Viewer" else [draft]
        ), words


def test_search_of_payments_emails_and_cards_matches_staff_by_name_only(client, staff, groups):
    groups["Manager"].permissions.add(
        *Permission.objects.filter(codename__in=("view_outboxmessage", "view_savedcard"))
    )
    colleague = StaffFactory(**GRACE)
    payment = Payment.objects.get(reservation=make_booking(colleague))
    rows = {
        "payments_payment": payment,
        "payments_refund": payment.refunds.create(amount=1, created_at=NOW),
        "payments_dispute": payment.disputes.create(amount=1, reference="dp_1", opened_at=NOW),
        "payments_savedcard": SavedCardFactory(user=colleague),
        "accounts_outboxmessage": OutboxMessage.objects.get(user=colleague),
    }
    for member, is_found in ((staff("Manager"), False), (AdministratorFactory(), True)):
        client.force_login(member)
        for name, row in rows.items():
            assert find(client, name, "hopp") == [row]
            for words in ("5550111", "grace@"):
                assert find(client, name, words) == ([row] if is_found else []), (name, words)


def test_search_by_digits_finds_a_number_before_phone_numbers(client):
    client.force_login(AdministratorFactory())
    first = make_draft(UserFactory())
    digits = str(first.pk).zfill(3)
    other = make_draft(UserFactory(phone_number=f"555 {digits}"))

    assert find(client, "reservations_reservation", digits) == [first]
    assert find(client, "reservations_reservation", f"555{digits}") == [other]
    assert find(client, "reservations_reservation", f"#555{digits}") == []


@pytest.mark.parametrize("where", ["some", "all"])
def test_search_of_reservations_executes_a_constant_number_of_queries(client, staff, where):
    room, grace = make_room(), UserFactory(**GRACE)
    client.force_login(staff("Desk", *([room.center] if where == "some" else [])))
    url = reverse("admin:reservations_reservation_changelist") + "?q=5550111"

    def fill(count):
        many(room, grace, count, start=NOW)
        for _ in range(count):
            other = UserFactory(phone_number="+1 555 0111")
            many(room, other, 1, start=NOW, status=Status.CANCELLED)

    fill(2)
    few = queries_of(client, url)
    fill(30)

    assert queries_of(client, url) == few
