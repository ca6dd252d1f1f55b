"""Lists, uses and imports reveal no address or number of an account that staff may not view."""

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from accounts.act import Act
from accounts.models import OutboxMessage
from payments.models import Payment
from reservations.models import PromoRedemption
from reservations.models.status import Status
from tests.admin_forms import form_of
from tests.backoffice.many import many
from tests.backoffice.reading import list_rows
from tests.factories_people import (
    AdministratorFactory,
    SavedCardFactory,
    StaffFactory,
    UserFactory,
)
from tests.factories_reservations import (
    NOW,
    AllowanceFactory,
    PartnerFactory,
    PromoCodeFactory,
    make_booking,
    make_draft,
    make_room,
)
from tests.imports import build_csv, get_cells, get_errors

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

ADDRESSES = ("5550111", "grace@", "hopper 0111")
ADA = {"email": "ada@engines.example", "first_name": "Ada"}
GRACE = {
    "email": "grace@navy.example",
    "first_name": "Grace",
    "last_name": "Hopper",
    "phone_number": "+1 720 555 0111",
}


def find(client, label, words):
    return list_rows(client, label, q=words)


@pytest.mark.parametrize("role", ["Viewer", "Desk"])
def test_search_of_reservations_matches_a_hidden_account_by_name_only(client, staff, role):
    room, grace = make_room(), UserFactory(**GRACE)
    draft = make_draft(grace, room)
    make_booking(grace, make_room())
    client.force_login(staff(role, room.center))

    assert find(client, "reservations.reservation", "hopp") == [draft]
    for words in ADDRESSES:
        assert find(client, "reservations.reservation", words) == [], words

    # The page of the draft shows the complete address, but no phone number and no account.
    seen = [] if role == "Viewer" else [draft]
    assert find(client, "reservations.reservation", grace.email) == seen
    page = client.get(reverse("admin:reservations_reservation_change", args=[draft.pk])).text
    account = reverse("admin:accounts_user_change", args=[grace.pk])
    assert (grace.email in page) is bool(seen)
    assert grace.phone_number not in page
    assert account not in page

    draft.transition_to(Status.CANCELLED, Act(None, NOW), booked_at=NOW, cancelled_at=NOW)
    for words in ADDRESSES:
        assert find(client, "reservations.reservation", words) == seen, words
    page = client.get(reverse("admin:reservations_reservation_change", args=[draft.pk])).text
    assert (grace.phone_number in page) is (account in page) is bool(seen)


def test_search_of_payments_emails_and_cards_matches_staff_by_name_only(client, staff, groups):
    groups["Manager"].permissions.add(
        *Permission.objects.filter(codename__in=("view_outboxmessage", "view_savedcard"))
    )
    colleague = StaffFactory(**GRACE)
    payment = Payment.objects.get(reservation=make_booking(colleague))
    rows = {
        "payments.payment": payment,
        "payments.refund": payment.refunds.create(amount=1, created_at=NOW),
        "payments.dispute": payment.disputes.create(amount=1, reference="dp_1", opened_at=NOW),
        "payments.savedcard": SavedCardFactory(user=colleague),
        "accounts.outboxmessage": OutboxMessage.objects.get(user=colleague),
    }
    for member, is_found in ((staff("Manager"), False), (AdministratorFactory(), True)):
        client.force_login(member)
        for name, row in rows.items():
            assert find(client, name, "hopp") == [row]
            assert find(client, name, "5550111") == ([row] if is_found else []), name


def test_uses_of_a_promo_code_are_those_of_visible_customers(client, staff):
    promo, room = PromoCodeFactory(), make_room()
    elsewhere = make_room()
    customer, colleague = UserFactory(), StaffFactory(**GRACE)
    for place, user in ((room, customer), (room, colleague), (elsewhere, UserFactory(**ADA))):
        [booking] = many(place, user, 1, start=NOW)
        PromoRedemption.objects.create(
            promo_code=promo, user=user, reservation=booking, amount=1, taken_at=NOW
        )
    url = reverse("admin:reservations_promocode_change", args=[promo.pk])

    client.force_login(staff("Manager", room.center))
    page = client.get(url).text
    assert customer.email in page
    assert colleague.email not in page
    assert ADA["email"] not in page

    client.force_login(AdministratorFactory())
    page = client.get(url).text
    assert colleague.email in page
    assert ADA["email"] in page


def test_import_of_allowances_finds_no_account_of_staff(staff):
    colleague, customer = StaffFactory(**GRACE), UserFactory(**ADA)
    stored = AllowanceFactory(user=colleague, description="Own")
    emails = (customer.email, colleague.email)
    added = build_csv(
        *({"account": email, "description": "Plan", "hours": "2"} for email in emails)
    )
    changed = build_csv({"id": stored.pk, "description": "Other"})

    assert get_cells(get_errors("allowances", added, staff("Manager"))) == [(3, "account")]
    assert get_cells(get_errors("allowances", changed, staff("Manager"))) == [(2, "id")]
    for user in (AdministratorFactory(), None):
        assert get_errors("allowances", added, user) == []
        assert get_errors("allowances", changed, user) == []


def test_select_of_accounts_names_and_accepts_no_account_of_staff(client, staff):
    colleague, customer = StaffFactory(**GRACE), UserFactory(**ADA)
    url = reverse("admin:reservations_allowance_add")
    for member, is_offered in ((staff("Manager"), False), (AdministratorFactory(), True)):
        client.force_login(member)
        assert customer.email in client.get(url, {"user": customer.pk}).text
        page = client.get(url, {"user": colleague.pk})
        assert (colleague.email in page.text) is is_offered
        form = {**form_of(page), "description": "Plan", "hours": "2", "user": colleague.pk}
        assert (client.post(url, form).status_code == 302) is is_offered


def test_filter_of_a_list_names_only_a_row_that_the_user_may_view(client, staff):
    room, other = make_room(), make_room()
    promo, partner = PromoCodeFactory(), PartnerFactory()
    shown = {
        "promo_code": promo.code,
        "partner": partner.name,
        "room__center": other.center.name,
    }
    keys = {"promo_code": promo.pk, "partner": partner.pk, "room__center": other.center_id}
    url = reverse("admin:reservations_reservation_changelist")
    for member, names in (
        (staff("Viewer", room.center), set()),
        (staff("Viewer"), {"room__center"}),
        (AdministratorFactory(), set(shown)),
    ):
        client.force_login(member)
        for name, text in shown.items():
            page = client.get(url, {f"{name}__id__exact": keys[name]})
            assert page.status_code == 200
            assert (text in page.text) is (name in names), (member, name)
