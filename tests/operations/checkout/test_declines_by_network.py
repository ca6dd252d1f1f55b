"""Declined cards are limited for a network, while anybody can create accounts (B16.6)."""

import pytest
from django.core.management import call_command

from accounts import limits
from accounts.limits import RateLimit
from accounts.models import AttemptWindow
from payments import setups
from payments.gateways.sandbox import confirm_setup
from payments.models import PaymentSetup
from tests.factories_people import UserFactory, issue_token
from tests.factories_reservations import (
    CARD,
    DECLINED_NUMBER,
    HOUR,
    NOW,
    START,
    make_booking,
    make_draft,
)
from tests.http import post
from tests.operations.helpers import BAD_CARD
from tests.payments.gateway_helpers import card as make_card
from tests.reservations.rescheduling_helpers import make_room_at_rate

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

MAXIMUM = 3


@pytest.fixture(autouse=True)
def few_declines(monkeypatch, settings):
    settings.SIGN_UP = "open"
    limit = RateLimit("card-declined-network", MAXIMUM, HOUR)
    monkeypatch.setattr(limits, "CARD_DECLINED_BY_NETWORK", limit)


def pay(client, draft, card=CARD):
    token = issue_token(draft.user)
    body = {"Token": token, "ReservationId": draft.pk, "PaymentInfo": card}
    return post(client, "/api/reservations/checkout", body)


def test_thief_with_many_accounts_cannot_test_cards_for_long(client):
    paid = make_draft(UserFactory())
    draft = make_draft(UserFactory(), paid.room, start=START + 3 * HOUR)
    assert pay(client, paid).status_code == 200
    for user in [UserFactory() for _ in range(MAXIMUM - 1)]:
        body = {"Token": issue_token(user), "PaymentInfo": BAD_CARD}
        assert post(client, "/api/account/update-payment-info", body).status_code == 402
    assert pay(client, draft, BAD_CARD).status_code == 402

    refused = [
        pay(client, draft),
        post(client, "/api/account/update-payment-info", {**body, "PaymentInfo": CARD}),
        post(client, "/api/account/create-payment-setup", {"Token": body["Token"]}),
    ]

    assert [each.status_code for each in refused] == [429, 429, 429]
    assert refused[0]["Retry-After"]
    # A Checkout that was paid before is repeated as always.
    assert pay(client, paid).json()["Status"] == "Confirmed"
    # Other networks go on.
    client.defaults["REMOTE_ADDR"] = "198.51.100.7"
    assert pay(client, draft).status_code == 200


def test_declined_cards_of_changes_count_for_the_network(client):
    bookings = [make_booking(UserFactory()) for _ in range(MAXIMUM + 1)]

    statuses = [change(client, each, BAD_CARD).status_code for each in bookings]

    assert statuses == [402] * MAXIMUM + [429]
    assert change(client, bookings[0]).status_code == 429
    client.defaults["REMOTE_ADDR"] = "198.51.100.7"
    assert change(client, bookings[0]).status_code == 200


@pytest.mark.parametrize(
    ("learn", "counted"),
    [
        (lambda setup: None, 1),
        (lambda setup: setups.record_refusal(setup, "attempt 1", "No.", now=NOW), 1),
        (lambda setup: call_command("reconcile_payments"), 1),
        (lambda setup: PaymentSetup.objects.update(expires_at=NOW), 0),
        (lambda setup: PaymentSetup.objects.update(state="failed"), 0),
    ],
    ids=["refused", "known by a webhook", "reconciled", "expired", "answered before"],
)
def test_repeated_question_about_a_setup_counts_once_for_the_network(client, learn, counted):
    user, innocent = UserFactory(), UserFactory()
    token = issue_token(user)
    body = post(client, "/api/account/create-payment-setup", {"Token": token}).json()
    secret = body["PaymentSetup"]["ClientSecret"]
    confirm_setup(secret, make_card(DECLINED_NUMBER))
    learn(PaymentSetup.objects.get())

    request = {"Token": token, "PaymentSetupId": body["PaymentSetup"]["Id"]}
    answers = [post(client, "/api/account/complete-payment-setup", request) for _ in range(10)]

    assert {each.status_code for each in answers} == {402}
    windows = AttemptWindow.objects.filter(scope="card-declined-network")
    assert list(windows.values_list("count", flat=True)) == [1] * counted
    assert pay(client, make_draft(innocent)).status_code == 200


def change(client, booking, card=CARD):
    """Move the booking to a room at 100 an hour."""
    room = make_room_at_rate(booking.room, 100)
    body = {"Token": issue_token(booking.user), "ReservationId": booking.pk, "PaymentInfo": card}
    body |= {"MeetingRoomId": room.pk, "ExpectedTotal": 300}
    return post(client, "/api/reservations/change", body)


def test_network_is_not_limited_where_only_staff_create_accounts(client, settings):
    settings.SIGN_UP = "closed"
    draft = make_draft(UserFactory())

    for _ in range(MAXIMUM + 1):
        assert pay(client, draft, BAD_CARD).status_code == 402

    assert not AttemptWindow.objects.filter(scope="card-declined-network").exists()
