"""The back office's sign-in page: its rate limits, what it reveals, and its security headers."""

import logging
import re

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import OutboxMessage, User
from roombook.backoffice.audit_log import AuditEntry
from tests.backoffice.reading import words
from tests.factories_people import PASSWORD, AdministratorFactory, StaffFactory, UserFactory
from tests.factories_reservations import NOW
from tests.http import post

pytestmark = pytest.mark.django_db

LOGIN = reverse("admin:login")
FORGOTTEN = reverse("admin:admin_password_reset")
NOT_VALID = "This link was used already"


def sign_in(client, email, password):
    return client.post(LOGIN, {"username": email, "password": password})


def get_form_errors(response):
    """The errors of the form, as the page shows them."""
    errors = [str(each) for each in response.context["form"].non_field_errors()]
    assert all(each in response.text for each in errors)
    return errors


def test_refused_sign_in_does_not_reveal_whether_account_exists(client):
    StaffFactory(email="staff@example.com")
    StaffFactory(email="gone@example.com", is_active=False)
    UserFactory(email="ada@example.com")

    answers = {
        email: get_form_errors(sign_in(client, email, password))
        for email, password in (
            ("staff@example.com", "wrong"),
            ("nobody@example.com", "wrong"),
            ("gone@example.com", PASSWORD),
            # A customer.
            ("ada@example.com", PASSWORD),
        )
    }

    assert len({tuple(each) for each in answers.values()}) == 1, answers
    shown = answers["staff@example.com"][0]
    assert shown.startswith("Please enter the correct e-mail address and password")
    assert client.get(reverse("admin:index")).status_code == 302


def test_script_whose_session_has_ended_gets_no_redirect(client):
    page = reverse("admin:accounts_user_changelist")
    assert client.post(page, headers={"X-Requested-With": "fetch"}).status_code == 401
    assert client.get(page).status_code == 302


def test_sixth_failed_sign_in_shows_rate_limit_message_wherever_the_others_were(client):
    StaffFactory(email="staff@example.com")
    for _ in range(3):
        sign_in(client, "staff@example.com", "wrong")
    for _ in range(2):
        post(client, "/api/sign-in", {"EmailAddress": "staff@example.com", "Password": "wrong"})

    assert "Too many attempts" in get_form_errors(sign_in(client, "staff@example.com", PASSWORD))[0]
    assert "_auth_user_id" not in client.session


def ask_for_link(client, email):
    assert client.post(FORGOTTEN, {"email_address": email}).url == LOGIN
    [link] = re.findall(r"http://testserver(/admin/\S+)", OutboxMessage.objects.get().text)
    return link


def test_forgotten_password_is_replaced_with_a_link_by_email(client):
    StaffFactory(email="staff@example.com", second_factor_since=NOW)
    assert f'href="{FORGOTTEN}"' in client.get(LOGIN).text
    link, message = ask_for_link(client, "Staff@example.com"), OutboxMessage.objects.get()
    assert (message.to, message.is_secret) == ("staff@example.com", True)
    assert message.expires_at is not None
    form = client.get(link, follow=True)
    new = "noisy-harbour-43"
    address, fields = form.redirect_chain[-1][0], {"new_password1": new, "new_password2": new}
    assert client.post(address, fields).url == LOGIN
    assert AuditEntry.objects.get(note="The password was set by a link.").actor is not None
    assert sign_in(client, "staff@example.com", new).status_code == 302
    assert NOT_VALID in client.get(link, follow=True).text


@pytest.mark.parametrize(
    "change", [{"second_factor_since": None}, {"is_active": False}, {"is_staff": False}]
)
def test_link_of_a_forgotten_password_ends_with_what_allowed_it(client, change):
    user = StaffFactory(email="staff@example.com", second_factor_since=NOW)
    link = ask_for_link(client, user.email)
    User.objects.filter(pk=user.pk).update(**change)

    assert NOT_VALID in client.get(link, follow=True).text
    # Nor is it an invitation, which asks for no second factor.
    assert NOT_VALID in client.get(link.replace("/reset/", "/"), follow=True).text


def test_forgotten_password_sends_nothing_to_others_and_does_not_reveal_it(client):
    StaffFactory(email="staff@example.com")
    StaffFactory(email="gone@example.com", second_factor_since=NOW, is_active=False)
    UserFactory(email="ada@example.com")
    for name in ("staff", "gone", "ada", "nobody"):
        assert client.post(FORGOTTEN, {"email_address": f"{name}@example.com"}).url == LOGIN
    assert not OutboxMessage.objects.exists()
    answers = [client.post(FORGOTTEN, {"email_address": "eve@example.com"}) for _ in range(6)]
    assert answers[0].status_code == 302
    assert "Too many attempts" in get_form_errors(answers[-1])[0]


def test_session_cookie_is_http_only_and_ends_with_the_browser_unless_the_setting_says_otherwise(
    client, settings
):
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    StaffFactory(email="staff@example.com")
    client.get(LOGIN)
    assert sign_in(client, "STAFF@example.com", PASSWORD).status_code == 302

    for name in ("sessionid", "csrftoken"):
        cookie = client.cookies[name]
        assert cookie["httponly"], name
        assert cookie["samesite"] == "Lax", name
        assert cookie["secure"], name
    assert client.cookies["sessionid"]["max-age"] == ""
    settings.SESSION_EXPIRE_AT_BROWSER_CLOSE = False
    client.cookies.clear()
    cookie = sign_in(client, "staff@example.com", PASSWORD).cookies["sessionid"]
    assert cookie["max-age"] == settings.SESSION_COOKIE_AGE


def test_password_is_changed_and_wrong_old_passwords_are_counted(client):
    user, address = StaffFactory(), reverse("admin:password_change")
    client.force_login(user)
    new = {"new_password1": "stormy-lighthouse-7", "new_password2": "stormy-lighthouse-7"}

    done = client.post(address, {"old_password": PASSWORD, **new})
    assert client.get(done.url).status_code == 200
    user.refresh_from_db()
    assert user.check_password("stormy-lighthouse-7")

    new = {"new_password1": PASSWORD, "new_password2": PASSWORD}
    for _ in range(5):
        client.post(address, {"old_password": "wrong", **new})
    response = client.post(address, {"old_password": "stormy-lighthouse-7", **new})
    assert response.status_code == 200
    assert "Too many attempts" in response.text
    user.refresh_from_db()
    assert user.check_password("stormy-lighthouse-7")


def policy_of(response):
    parts = response["Content-Security-Policy"].split("; ")
    return {name: set(rest) for name, *rest in (each.split() for each in parts)}


@pytest.mark.parametrize("page", ["login", "backoffice_auditentry_changelist"])
def test_csp_in_the_back_office_forbids_inline_and_foreign_scripts(client, page):
    if page != "login":
        client.force_login(AdministratorFactory())
    response = client.get(reverse(f"admin:{page}"))
    policy = policy_of(response)

    assert response.status_code == 200
    # The theme's Alpine evaluates the attributes of its pages.
    assert policy["script-src"] == {"'self'", "'unsafe-eval'"}
    assert policy["style-src"] == {"'self'", "'unsafe-inline'"}
    assert policy["connect-src"] == policy["form-action"] == {"'self'"}
    assert policy["base-uri"] == policy["frame-ancestors"] == {"'none'"}


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("accounts/user/?password__startswith=p", None),
        ("accounts/outboxmessage/?html__contains=p", None),
        ("reservations/reservation/?user__password__startswith=p", None),
        ("login/", dict.fromkeys(map(str, range(10_001)), "x")),
    ],
)
def test_request_that_django_refuses_logs_no_error(client, caplog, path, data):
    client.force_login(AdministratorFactory())

    url = f"/admin/{path}"
    response = client.get(url) if data is None else client.post(url, data)

    assert response.status_code == 400
    assert [each for each in caplog.records if each.levelno >= logging.ERROR] == []


def test_form_of_a_lapsed_session_is_sent_by_nobody_but_who_entered_it(client):
    ann, bob = (AdministratorFactory(first_name=name) for name in ("Ann", "Bob"))
    url, sent = reverse("admin:centers_resourcetype_add"), {"name": "Studio", "position": "0"}
    client.force_login(ann)
    client.get(url)
    del client.cookies["sessionid"]
    page = client.post(url, sent)
    for user in (bob, ann):
        kept = {"kept_form": page.context["kept_form"], "username": user.email}
        answer = client.post(page.context["app_path"], {**kept, "password": PASSWORD})
        assert ("only who entered it can send it" in words(answer)) is (user == bob)
        assert ('value="Studio"' in answer.text) is (user == ann)
        del client.cookies["sessionid"]


def test_form_of_before_another_sign_in_says_what_to_do():
    client = Client(enforce_csrf_checks=True)
    AdministratorFactory(email="root@example.com")
    client.get(LOGIN)

    fields = {"username": "root@example.com", "password": PASSWORD, "csrfmiddlewaretoken": "stale"}
    stale = client.post(LOGIN, fields)
    client.cookies.clear()
    no_cookie = client.post(LOGIN, fields)

    for answer in (stale, no_cookie):
        assert answer.status_code == 403
        assert "Nothing was saved. You have signed in or out" in answer.text
