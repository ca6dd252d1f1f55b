"""The pages of staff: their list, their roles, and invitations (B18)."""

import re

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from accounts.models import ApiToken, CenterRole, KnownNetwork, OutboxMessage, User
from roombook.backoffice.models import AuditEntry
from tests import factories_centers as make
from tests.factories_people import PASSWORD, AdministratorFactory, StaffFactory, UserFactory

pytestmark = pytest.mark.django_db

LIST = reverse("admin:accounts_staffmember_changelist")
ADD = reverse("admin:accounts_staffmember_add")
CUSTOMERS = reverse("admin:accounts_user_changelist")
INVITED = {"email": "Grace@Example.com", "first_name": "Grace", "last_name": "Hopper"}


@pytest.fixture
def root(client):
    user = AdministratorFactory(email="root@example.com", first_name="Root", last_name="Boss")
    client.force_login(user)
    return user


def page_of(user):
    return reverse("admin:accounts_staffmember_change", args=[user.pk])


def get_listed(client, url, **params):
    return {user.email for user in client.get(url, params).context["cl"].result_list}


def fill(user, **fields):
    names = {name: getattr(user, name) for name in ("email", "first_name", "last_name")}
    return {**names, "is_active": "on", "is_staff": "on", **fields}


NEW = {"new_password1": "stormy-lighthouse-7", "new_password2": "stormy-lighthouse-7"}


def get_invitations():
    return OutboxMessage.objects.filter(text__contains="/invitation/").order_by("pk")


def get_link():
    return re.search(r"http://testserver(/\S+)", get_invitations().last().text)[1]


def choose_password(client, fields=NEW):
    """Follow the link of the invitation in another browser, and choose a password."""
    visitor = client.__class__()
    page = visitor.get(get_link(), follow=True)
    assert "Save password" in page.text
    return visitor, visitor.post(page.redirect_chain[-1][0], fields)


def test_staff_and_customers_are_listed_separately(client, root):
    StaffFactory(email="grace@example.com", last_name="Hopper")
    UserFactory(email="hopper@customers.example")

    for query in ({}, {"q": "hopper"}):
        staff = get_listed(client, LIST, **query) - {root.email}
        assert staff == {"grace@example.com"}
        assert get_listed(client, CUSTOMERS, **query) == {"hopper@customers.example"}


def test_role_is_given_and_taken_at_many_centers_at_once(client, root, groups):
    clerk = StaffFactory()
    kept, taken, *new = [make.CenterFactory() for _ in range(12)]
    for center in (kept, taken):
        CenterRole.objects.create(user=clerk, group=groups["Desk"], center=center)
    chosen = [kept.pk, *(center.pk for center in new)]

    response = client.post(
        page_of(clerk),
        fill(clerk, groups=[groups["Viewer"].pk], **{f"centers_{groups['Desk'].pk}": chosen}),
    )

    assert response.status_code == 302, response.text
    given = CenterRole.objects.filter(user=clerk)
    assert {(role.center_id, role.group.name) for role in given} == {(pk, "Desk") for pk in chosen}
    assert [group.name for group in clerk.groups.all()] == ["Viewer"]
    entries = AuditEntry.objects.filter(content_type__model="centerrole", actor=root)
    assert entries.count() == 11
    page = client.get(page_of(clerk)).text
    assert "user_permissions" not in page
    assert 'name="password"' not in page


def test_change_of_a_member_of_staff_is_in_the_audit_log_and_may_make_a_customer(client, root):
    clerk = StaffFactory(email="clerk@example.com")

    client.post(page_of(clerk), fill(clerk, is_superuser="on"))

    clerk.refresh_from_db()
    assert clerk.is_superuser
    entry = AuditEntry.objects.get(content_type__model="user", object_id=clerk.pk, actor=root)
    assert "is_superuser" in str(vars(entry))
    fields = fill(clerk)
    del fields["is_staff"]
    client.post(page_of(clerk), fields)
    assert clerk.email not in get_listed(client, LIST)
    assert clerk.email in get_listed(client, CUSTOMERS)


def test_invited_member_of_staff_sets_a_password_by_the_link_once(client, root, groups):
    center = make.CenterFactory()
    role = {f"centers_{groups['Desk'].pk}": [center.pk]}

    response = client.post(ADD, {**INVITED, **role})

    assert response.status_code == 302, response.text
    grace = User.objects.get(email="grace@example.com")
    assert (grace.type, grace.has_usable_password()) == ("Staff", False)
    assert CenterRole.objects.get(user=grace).center == center
    message = OutboxMessage.objects.get()
    assert message.to == "grace@example.com"
    # Its text is not shown in the outbox.
    page = client.get(reverse("admin:accounts_outboxmessage_change", args=[message.pk])).text
    assert get_link() not in page
    assert "Not shown" in page
    # A weak password is refused.
    _, refused = choose_password(client, dict.fromkeys(NEW, "12345678"))
    assert refused.status_code == 200
    grace.refresh_from_db()
    assert not grace.has_usable_password()
    visitor, done = choose_password(client)
    assert done.url == reverse("admin:login")
    visitor.post(done.url, {"username": "grace@example.com", "password": NEW["new_password1"]})
    assert visitor.get(reverse("admin:index")).status_code == 200
    again = client.__class__().get(get_link(), follow=True)
    assert "expired" in again.text


def test_link_of_an_invitation_is_not_logged(client, root, caplog):
    client.post(ADD, INVITED)
    link = get_link()
    caplog.set_level("INFO")

    for each in (link, link.rstrip("/"), f"{link}x/y"):
        client.__class__().get(each, follow=True)

    assert caplog.text.count("/invitation/") >= 3
    assert link.split("/")[-2] not in caplog.text


def test_invited_customer_keeps_the_account_and_must_choose_a_new_password(client, root):
    customer = UserFactory(email="grace@example.com", first_name="Amazing")
    ApiToken.issue(customer, now=timezone.now())
    KnownNetwork.record(customer.pk, "digest", now=timezone.now())
    session = client.__class__()
    session.force_login(customer)

    response = client.post(ADD, INVITED)

    assert response.status_code == 302, response.text
    customer = User.objects.get(pk=customer.pk)
    assert (customer.type, customer.first_name) == ("Staff", "Grace")
    assert not customer.has_usable_password()
    assert not customer.check_password(PASSWORD)
    assert not customer.tokens.exists()
    assert not customer.known_networks.exists()
    assert session.get(reverse("admin:index")).status_code == 302
    choose_password(client)
    customer.refresh_from_db()
    assert customer.check_password(NEW["new_password1"])
    # It can be sent again.
    client.post(LIST, {"action": "send_invitation", "_selected_action": [customer.pk]})
    assert get_invitations().count() == 2


def test_staff_and_deactivated_accounts_cannot_be_invited(client, root):
    grace = UserFactory(email="grace@example.com", is_staff=True)
    assert client.post(ADD, INVITED).status_code == 200
    User.objects.filter(pk=grace.pk).update(is_staff=False, is_active=False)
    assert client.post(ADD, INVITED).status_code == 200
    assert not OutboxMessage.objects.exists()


def test_role_page_changes_permissions_and_offers_none_of_the_program(client, root, groups):
    desk = groups["Desk"]
    add = Permission.objects.get(codename="add_closure")
    page = client.get(reverse("admin:auth_group_change", args=[desk.pk])).text
    for text in ("log entry", "session", "content type", "totp"):
        assert text not in page.lower()
    before = set(desk.permissions.values_list("pk", flat=True))
    response = client.post(
        reverse("admin:auth_group_change", args=[desk.pk]),
        {"name": "Desk", "permissions": [*before, add.pk]},
    )

    assert response.status_code == 302
    assert {*desk.permissions.values_list("pk", flat=True)} == {*before, add.pk}
