"""Staff correct (B22.13) and erase customers, and export what is stored about them."""

import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, Permission
from django.urls import reverse
from django.utils import timezone

from accounts.email_codes import CodePurpose, issue_code
from accounts.models import OutboxMessage, User
from accounts.models.account_erasure import PSEUDONYM_DOMAIN
from roombook.backoffice.models import AuditEntry
from tests.admin_forms import form_of
from tests.factories_people import AdministratorFactory, StaffFactory, UserFactory
from tests.factories_reservations import make_booking
from tests.world import World


def get_url(name, user):
    return reverse(f"admin:accounts_user_{name}", args=[user.pk])


@pytest.fixture
def customer(world):
    return UserFactory(email="leaving@example.com", first_name="Lea", last_name="Vogel")


@pytest.fixture
def admin_user(world):
    return AdministratorFactory()


@pytest.fixture
def admin_client(client, admin_user):
    client.force_login(admin_user)
    return client


def grant(group_name):
    Group.objects.get(name=group_name).permissions.add(
        Permission.objects.get(codename="erase_user")
    )


def test_erase_page_says_what_stays_and_erases_after_confirmation(
    admin_client, admin_user, customer
):
    url = get_url("erase", customer)
    assert url in admin_client.get(get_url("change", customer)).text

    page = admin_client.get(url).text
    assert "Stays, under a pseudonym, for bookkeeping" in page
    assert User.objects.get(pk=customer.pk).email == customer.email
    page = admin_client.post(url, follow=True).text

    assert 'name="_save"' not in page
    erased = User.objects.get(pk=customer.pk)
    assert erased.get_full_name() == f"Erased customer {customer.pk}"
    entry = AuditEntry.objects.get(note="The account was erased.")
    assert (entry.actor, entry.object_name) == (admin_user, f"customer {customer.pk}")
    assert customer.email not in admin_client.get(get_url("history", customer)).text
    assert admin_client.post(url).status_code == 403


def test_erase_page_refuses_a_customer_with_bookings(admin_client, world: World):
    url = get_url("erase", world.ada)

    assert "Not possible" in admin_client.get(url).text
    page = admin_client.post(url, follow=True).text

    assert "There are bookings or requests that have not ended yet." in page
    assert User.objects.get(pk=world.ada.pk).email == world.ada.email


def test_export_downloads_the_data_and_is_recorded(admin_client, admin_user, world):
    url = get_url("export", world.ada)
    assert url in admin_client.get(get_url("change", world.ada)).text

    assert admin_client.get(url).status_code == 405
    response = admin_client.post(url)

    assert response.json()["Account"]["EmailAddress"] == world.ada.email
    assert response["Content-Disposition"] == f'attachment; filename="customer-{world.ada.pk}.json"'
    assert AuditEntry.objects.get(note="Exported all data of the account.").actor == admin_user


def test_both_need_the_permission_at_all_centers_and_a_customer(client, staff, world, customer):
    everywhere, at_center = staff("Manager"), staff("Manager", world.center)

    def post(user, name, account):
        client.force_login(user)
        return client.post(get_url(name, account)).status_code

    assert {post(everywhere, name, customer) for name in ("erase", "export")} == {403}
    grant("Manager")
    for account in (world.ada, customer):
        assert {post(at_center, name, account) for name in ("erase", "export")} == {403}
    assert {post(everywhere, name, StaffFactory()) for name in ("erase", "export")} == {403}
    assert post(everywhere, "export", customer) == 200
    assert post(everywhere, "erase", customer) == 302
    assert not User.objects.get(pk=customer.pk).is_active


def correct(client, user, **fields):
    data = {"first_name": "Ada", "last_name": "King", "email": user.email, **fields}
    return client.post(get_url("contact", user), data)


@pytest.fixture
def guest(world):
    """Ada, but she has never signed in."""
    User.objects.filter(pk=world.ada.pk).update(password=make_password(None))
    return User.objects.get(pk=world.ada.pk)


def test_desk_corrects_the_contact_details_of_a_customer_of_its_center(client, staff, world, guest):
    ada, former = guest, guest.email
    clerk = staff("Desk", world.center)
    client.force_login(clerk)
    page = reverse("admin:accounts_user_change", args=[ada.pk])
    assert get_url("contact", ada) in client.get(page).text
    issue_code(CodePurpose.PASSWORD_RESET, former, ada, network="", now=timezone.now())

    response = correct(client, ada, email="Ada.King@Example.com", phone_number="+1 303 555 0100")

    assert response.url == page
    ada.refresh_from_db()
    assert (ada.last_name, ada.email, ada.phone_number) == (
        *("King", "ada.king@example.com", "+1 303 555 0100"),
    )
    note = OutboxMessage.objects.get(kind="e-mail change")
    assert note.to == former
    assert "ada.king" not in note.text
    assert not ada.email_codes.exists()
    entry = AuditEntry.objects.filter(changes__has_key="phone_number").latest("pk")
    assert entry.actor == clerk


def test_correction_to_an_impossible_address_changes_nothing(client, staff, world, guest):
    UserFactory(email="taken@example.com")
    client.force_login(staff("Desk", world.center))

    for address, problem in (
        ("taken@example.com", "already exists"),
        ("x@erased.invalid", "Nobody reads e-mail"),
    ):
        assert problem in correct(client, guest, email=address).text
        assert User.objects.get(pk=guest.pk).email == guest.email
    assert not OutboxMessage.objects.filter(kind="e-mail change").exists()


@pytest.mark.parametrize("has", ["a password", "booked elsewhere"])
def test_desk_cannot_take_over_an_account_by_its_address(client, staff, world, guest, has):
    if has == "a password":
        User.objects.filter(pk=guest.pk).update(password=make_password("quiet-harbour-42"))
    else:
        make_booking(guest)
    client.force_login(staff("Desk", world.center))
    page = client.get(get_url("contact", guest))
    assert "ask them to change it" in page.text

    correct(client, guest, email="clerk@example.com", last_name="Byron")

    found = User.objects.get(pk=guest.pk)
    assert (found.email, found.last_name) == (guest.email, "Byron")
    client.force_login(staff("Desk"))
    correct(client, guest, email="ada.king@example.com")
    assert User.objects.get(pk=guest.pk).email == "ada.king@example.com"


def test_correction_keeps_what_was_changed_while_its_form_was_open(client, staff, world, guest):
    client.force_login(staff("Desk", world.center))
    form = form_of(client.get(get_url("contact", guest)))
    User.objects.filter(pk=guest.pk).update(email="new@example.com", first_name="Augusta")

    client.post(get_url("contact", guest), form | {"phone_number": "+1 303 555 0100"})

    found = User.objects.get(pk=guest.pk)
    assert (found.email, found.first_name) == ("new@example.com", "Augusta")
    assert found.phone_number == "+1 303 555 0100"


@pytest.mark.parametrize("change", [{"is_staff": True}, {"email": f"1@{PSEUDONYM_DOMAIN}"}])
def test_colleagues_and_erased_accounts_are_not_corrected(client, staff, world, change):
    client.force_login(staff("Desk", world.center))
    User.objects.filter(pk=world.ada.pk).update(**change)

    assert correct(client, world.ada).status_code == 403
