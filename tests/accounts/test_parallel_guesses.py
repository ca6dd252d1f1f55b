"""Parallel guesses: a right one is refused if others have filled its window meanwhile."""

import pytest
from django.utils import timezone
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts import second_factor
from accounts.forms import OwnPasswordChangeForm
from accounts.limits import SIGN_IN_BY_EMAIL, RateLimit, SignInAttempts
from accounts.second_factor import verify_code
from reservations.booking import checkout
from reservations.booking.checkout import PARTNER_CODE
from reservations.booking.drafts import PROMO_CODE
from reservations.models import Partner, Reservation
from roombook.errors import TooManyRequests
from tests.factories_people import PASSWORD, StaffFactory, UserFactory, issue_token
from tests.factories_reservations import NOW, PartnerFactory, PromoCodeFactory, make_draft
from tests.http import post

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]


@pytest.fixture
def others_guess(monkeypatch):
    """Let others fill the window of a limit right after it has been checked for the first time."""

    def start(limit, key):
        check_window = RateLimit.check_window

        def check_and_fill(self, window, *, now):
            check_window(self, window, now=now)
            if self is limit:
                monkeypatch.setattr(RateLimit, "check_window", check_window)
                for _ in range(limit.maximum):
                    limit.attempt(key, now=now)

        monkeypatch.setattr(RateLimit, "check_window", check_and_fill)

    return start


def test_right_promo_code_is_refused_if_others_have_filled_the_window(client, others_guess):
    ada = UserFactory()
    PromoCodeFactory(code="TEN")
    draft = make_draft(ada)
    fields = {"Token": issue_token(ada), "ReservationId": draft.pk, "PromoCode": "TEN"}
    others_guess(PROMO_CODE, ada.pk)

    assert post(client, "/api/reservation/update-promo-code", fields).status_code == 429

    reservation = Reservation.objects.get()
    assert (reservation.promo_code, reservation.total_cost) == (None, 75)


def test_right_partner_code_is_refused_if_others_have_filled_the_window(monkeypatch):
    """The others fill it while the code is looked up."""
    ada = UserFactory()
    PartnerFactory(code="ACME")

    find = Partner.objects.filter

    def find_and_fill(**fields):
        for _ in range(PARTNER_CODE.maximum):
            PARTNER_CODE.attempt(ada.pk, now=NOW)
        return find(**fields)

    monkeypatch.setattr(Partner.objects, "filter", find_and_fill)
    with pytest.raises(TooManyRequests):
        checkout.get_partner("ACME", user=ada, now=NOW)


@pytest.fixture
def attempts(others_guess):
    grace = StaffFactory()
    attempts = SignInAttempts(grace.email, "127.0.0.1")
    others_guess(SIGN_IN_BY_EMAIL, f"{attempts.account_key} {attempts.network_key}")
    return grace, attempts


def test_right_code_of_the_app_is_refused_if_others_have_filled_the_window(attempts, monkeypatch):
    grace, attempts = attempts
    device = TOTPDevice(user=grace)
    monkeypatch.setattr(second_factor, "_verify_code_of_new_device", lambda *_: True)

    with pytest.raises(TooManyRequests):
        verify_code(grace, "123456", attempts, new_device=device, now=timezone.now())


def test_right_old_password_is_refused_if_others_have_filled_the_window(attempts):
    grace, _ = attempts
    new = "quiet-harbour-43"
    form = OwnPasswordChangeForm(
        grace,
        {"old_password": PASSWORD, "new_password1": new, "new_password2": new},
        network_address="127.0.0.1",
    )

    assert "Too many attempts" in form.errors["old_password"][0]
