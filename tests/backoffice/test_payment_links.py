"""Payment links: anybody who has the link pays the draft, with a card that is not saved (B26.7)."""

import re
from decimal import Decimal

import pytest
from django.core.management import call_command

from accounts import limits
from accounts.act import Act
from accounts.limits import RateLimit
from accounts.models import AttemptWindow, OutboxMessage, User
from payments import one_time_cards
from payments.gateways.sandbox import confirm_payment, refuse_payment
from payments.gateways.sandbox_models import SandboxCard, SandboxPayment, SandboxSetup
from payments.models import Payment, PaymentSetup, SavedCard
from reservations.booking import drafts, integrity, payment_links
from reservations.booking.cancellation import cancel
from reservations.booking.checkout import book_draft
from reservations.booking.price_adjustments import adjust_price
from reservations.desk.actions import get_available_actions
from reservations.models import history
from reservations.models.status import Status
from roombook.errors import CardDeclined, ReservationNotOpen
from roombook.secret_paths import mask_path
from tests.backoffice.reading import messages_of, words
from tests.backoffice.reservation_pages import confirm, reservation_url
from tests.factories_people import AdministratorFactory, SavedCardFactory, issue_token
from tests.factories_reservations import (
    CARD,
    HOUR,
    MINUTE,
    NOW,
    START,
    get_current_status,
    make_draft,
    make_room,
)
from tests.http import post
from tests.reservations.checkout.helpers import pay_with_saved_card
from tests.reservations.payment_link_pages import enter_card, find_link, follow

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

BANK_ASKS = "4000002760003184"


@pytest.fixture
def staff():
    return AdministratorFactory()


@pytest.fixture
def draft():
    # The card was saved by a setup, so that its bank can ask for a confirmation.
    return make_draft(SavedCardFactory(last4="1111", saved_by_setup=True).user)


@pytest.fixture
def link(draft, staff):
    return send(draft, staff)


def send(draft, staff):
    payment_links.send_link(
        Act(staff, NOW, is_staff=True), draft.pk, base_url="https://rooms.example.com"
    )
    message = OutboxMessage.objects.get(kind="payment link")
    assert message.is_secret
    return find_link(message)


def test_link_holds_the_room_and_books_it_once_it_is_paid(client, draft, link):
    draft.refresh_from_db()
    assert draft.hold_until == drafts.get_latest_hold_end(draft, now=NOW)
    bill = client.get(link)
    assert "Total $75.00" in words(bill)
    assert bill.headers["Referrer-Policy"] == "no-referrer"
    assert link not in mask_path(link)
    # To look at the bill changes nothing.
    assert not PaymentSetup.objects.exists()

    back = enter_card(client, link)
    assert "You have booked" in follow(client, back)
    assert "You have booked" in follow(client, back)
    assert "You have booked" in follow(client, link)

    assert get_current_status(draft) == Status.CONFIRMED
    payment = Payment.objects.get()
    assert (payment.state, payment.card_last4) == ("captured", "4242")
    # The saved card is still the customer's, and the other one is gone.
    assert SavedCard.objects.get().last4 == "1111"
    assert SandboxCard.objects.count() == 2
    call_command("reconcile_payments")
    assert SandboxCard.objects.get().last4 == "1111"
    assert any("payment_link_until" in entry.changes for entry in history.get_changes(draft))
    assert not list(integrity.find_problems(now=NOW))


def test_link_of_a_draft_that_staff_made_ends_with_its_hold_to_the_second(staff):
    draft = make_draft(now=NOW + MINUTE / 3, created_by=staff)
    act = Act(staff, NOW + MINUTE / 2, is_staff=True)
    draft = payment_links.send_link(act, draft.pk, base_url="https://rooms.example.com")
    assert draft.payment_link_until == draft.hold_until == NOW + 24 * HOUR + MINUTE / 3


def test_declined_card_is_not_charged_again_and_another_one_pays(client, draft, link):
    back = enter_card(client, link, number="4000000000000341")

    assert "was declined" in follow(client, back)
    assert "was declined" in follow(client, back)
    assert SandboxPayment.objects.count() == 1
    assert "was declined" in follow(client, link)
    draft.refresh_from_db()
    assert draft.hold_until == drafts.get_latest_hold_end(draft, now=NOW)

    follow(client, enter_card(client, link))
    assert get_current_status(draft) == Status.CONFIRMED
    assert SandboxPayment.objects.filter(state="captured").count() == 1


@pytest.mark.parametrize(
    ("act", "status", "text"),
    [
        (confirm_payment, Status.CONFIRMED, "You have booked"),
        (refuse_payment, Status.NEW, "was not confirmed"),
    ],
)
def test_bank_is_queried_and_the_page_shows_its_answer(client, draft, link, act, status, text):
    waiting = client.get(enter_card(client, link, number=BANK_ASKS), follow=True)

    assert "Open the page of your bank" in words(waiting)
    assert get_current_status(draft) == Status.PROCESSING
    call_command("reconcile_payments")
    act(re.search(r"/sandbox/payments/([\w-]+)", waiting.content.decode())[1])

    assert text in follow(client, link)
    assert get_current_status(draft) == status


def test_room_is_still_held_after_a_payment_that_was_not_confirmed_in_time(
    client, clock, draft, link
):
    client.get(enter_card(client, link, number=BANK_ASKS), follow=True)

    clock.move_to(NOW + HOUR)
    call_command("reconcile_payments")

    draft.refresh_from_db()
    assert (draft.status, draft.holds_slot) == (Status.NEW, True)
    assert draft.hold_until == drafts.get_latest_hold_end(draft, now=NOW)


def test_changed_price_is_shown_before_it_is_charged(client, draft, link, staff):
    back = enter_card(client, link)
    adjust_price(Act(staff, NOW, is_staff=True), draft.pk, amount=Decimal(-25), reason="Regular")

    page = follow(client, back)
    assert "The price has changed" in page
    assert "Total $50.00" in page
    assert "The price has changed" in words(client.post(link, {"total": "75.00"}))
    assert "The price has changed" in words(client.post(link, {"total": "free"}))
    assert not Payment.objects.exists()

    follow(client, enter_card(client, link, "50.00"))
    assert Payment.objects.get().amount == 50


def test_link_ends_with_its_draft_and_its_time(client, draft, link, clock, staff):
    assert client.get(f"{link}x").status_code == 404
    assert client.get("/pay/x").status_code == 404
    other = make_draft()
    other_link = payment_links._get_signer().sign_object([other.uid.hex, START.timestamp(), 0])
    book_draft(Act(staff, NOW, is_staff=True), other.pk, gateway="cash")
    page = follow(client, f"/pay/{other_link}")
    assert "You have booked" in page
    assert "cash" not in page
    back = enter_card(client, link)

    cancel(Act(staff, NOW, is_staff=True), draft.pk)
    assert client.get(link).status_code == 410
    assert client.get(back, follow=True).status_code == 410
    clock.move_to(START + HOUR)
    assert client.get(f"/pay/{other_link}").status_code == 410
    assert Payment.objects.get().gateway == "cash"


def test_closed_gateway_page_charges_nothing(client, link):
    page = client.post(link, {"total": "75.00"}).content.decode()
    setup = SandboxSetup.objects.get(secret=re.search(r'setups/(\w+)"', page)[1])

    assert "No card was entered" in follow(client, setup.return_url)
    assert not Payment.objects.exists()


def test_link_shows_nothing_of_a_payment_with_the_customers_own_card(client, draft, link):
    SandboxCard.objects.update(outcome="declined")
    with pytest.raises(CardDeclined):
        pay_with_saved_card(draft)
    assert "Total $75.00" in follow(client, link)
    assert "declined" not in follow(client, link)

    SandboxCard.objects.update(outcome="requires_action")
    pay_with_saved_card(draft)
    waiting = client.get(link)
    assert "Please do not pay again" in words(waiting)
    assert "/sandbox/payments/" not in waiting.content.decode()

    confirm_payment(SandboxPayment.objects.latest("pk").secret)
    call_command("reconcile_payments")
    booked = follow(client, link)
    booking, number, rest = booked.partition(f"(reservation {draft.pk})")
    assert number
    assert "$" not in booking + rest
    assert "1111" not in booking + rest


def test_cancelled_link_takes_no_payment_and_a_new_one_does(client, draft, link, office, staff):
    offered = office.get(reservation_url(draft))
    assert f'readonly value="http://testserver{link}"' in offered.text
    draft.refresh_from_db()
    assert payment_links.find_path(draft, now=draft.payment_link_until) == ""
    back = enter_card(client, link)

    done = confirm(office, draft, "cancel-link")

    assert "The payment link is cancelled" in messages_of(done)[0][1]
    for url in (link, back):
        assert client.get(url, follow=True).status_code == 410
    draft.refresh_from_db()
    assert draft.is_held_at(NOW)
    assert not Payment.objects.exists()
    # Its e-mail, which was not sent yet, is not sent any more.
    [message] = OutboxMessage.objects.filter(kind="payment link")
    assert message.expires_at == NOW
    assert "cancel-link" not in [each.name for each in get_available_actions(staff, draft, now=NOW)]
    with pytest.raises(ReservationNotOpen, match="no payment link"):
        payment_links.cancel_link(Act(staff, NOW, is_staff=True), draft.pk)

    message.delete()
    new_link = send(draft, staff)
    assert client.get(link).status_code == 410
    assert "You have booked" in follow(client, enter_card(client, new_link))


@pytest.mark.parametrize("event", ["cancelled", "disabled"])
def test_link_that_ends_between_its_check_and_the_claim_charges_nothing(
    client, draft, link, staff, monkeypatch, event
):
    back = enter_card(client, link)
    real = one_time_cards.fetch_card

    def fetch_card(setup, *, now):
        card = real(setup, now=now)
        if event == "cancelled":
            payment_links.cancel_link(Act(staff, now, is_staff=True), draft.pk)
        else:
            User.objects.filter(pk=draft.user_id).update(is_active=False)
        return card

    monkeypatch.setattr(one_time_cards, "fetch_card", fetch_card)

    assert client.get(back, follow=True).status_code == 410
    assert get_current_status(draft) == Status.NEW
    assert not Payment.objects.exists()


def test_link_of_a_disabled_account_shows_what_was_begun_but_takes_no_card(client, draft, link):
    back = enter_card(client, link)
    account = User.objects.filter(pk=draft.user_id)
    account.update(is_active=False)
    for url in (link, back):
        assert client.get(url, follow=True).status_code == 410
    assert client.post(link, {"total": "75.00"}).status_code == 410
    with pytest.raises(CardDeclined, match="The account is disabled"):
        one_time_cards.fetch_card(PaymentSetup.objects.get(), now=NOW)
    assert not Payment.objects.exists()

    account.update(is_active=True)
    waiting = client.get(enter_card(client, link, number=BANK_ASKS), follow=True)
    account.update(is_active=False)
    assert "Open the page of your bank" in follow(client, link)
    confirm_payment(re.search(r"/sandbox/payments/([\w-]+)", waiting.content.decode())[1])
    assert "You have booked" in follow(client, link)


def test_declined_cards_of_a_link_leave_the_customers_own_checkouts_alone(client, draft, link):
    other = make_draft(draft.user, make_room())
    for number in [*["4000000000000341"] * 3, *["4000000000000002"] * 3]:
        assert "was declined" in follow(client, enter_card(client, link, number=number))

    assert "Too many" in words(client.post(link, {"total": "75.00"}))
    body = {"Token": issue_token(draft.user)}
    assert post(client, "/api/account/create-payment-setup", body).status_code == 200
    body |= {"ReservationId": other.pk, "PaymentInfo": CARD}
    assert post(client, "/api/reservations/checkout", body).json()["Status"] == "Confirmed"
    # Nor do those of the customer block the link.
    AttemptWindow.objects.filter(key__startswith="link ").delete()
    AttemptWindow.objects.filter(key=draft.user_id).update(count=6)
    assert "You have booked" in follow(client, enter_card(client, link))


def test_setups_of_a_link_do_not_use_up_those_of_the_account(client, draft, link):
    pages = [client.post(link, {"total": "75.00"}) for _ in range(31)]

    assert ["url=/sandbox" in each.content.decode() for each in pages] == [True] * 30 + [False]
    body = {"Token": issue_token(draft.user)}
    assert post(client, "/api/account/create-payment-setup", body).status_code == 200


@pytest.mark.parametrize("sign_up", ["open", "closed"])
def test_network_that_tries_cards_on_many_links_is_refused_there_only(
    client, draft, link, staff, settings, monkeypatch, sign_up
):
    settings.SIGN_UP = sign_up
    limit = RateLimit("card-declined-network", 3, HOUR)
    monkeypatch.setattr(limits, "CARD_DECLINED_BY_NETWORK", limit)
    backs = [enter_card(client, link, number="4000000000000002") for _ in range(3)]
    for back in backs:
        assert "was declined" in follow(client, back)
        assert "was declined" in follow(client, back)
    OutboxMessage.objects.all().delete()
    second = send(make_draft(SavedCardFactory().user, make_room()), staff)

    assert "Too many" in words(client.post(second, {"total": "75.00"}))
    assert pay_with_saved_card(make_draft(draft.user, make_room())).status == Status.CONFIRMED
    body = {"Token": issue_token(draft.user)}
    assert post(client, "/api/account/create-payment-setup", body).status_code == 200
    client.defaults["REMOTE_ADDR"] = "198.51.100.7"
    assert "You have booked" in follow(client, enter_card(client, second))


def test_requests_of_one_network_do_not_close_the_page_of_a_link_for_others(client, link):
    client.get(link)
    AttemptWindow.objects.filter(scope="payment-link").update(count=limits.PAYMENT_LINK.maximum)

    assert client.get(link).status_code == 429
    client.defaults["REMOTE_ADDR"] = "198.51.100.7"
    assert client.get(link).status_code == 200
