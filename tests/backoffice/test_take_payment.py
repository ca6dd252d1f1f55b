"""Take payment on a draft's page: its ways, its checks and who may (B26)."""

import pytest

from accounts.models import OutboxMessage, User
from payments.gateways import declines
from payments.models import Payment
from reservations.models import history
from reservations.models.status import Status
from tests.backoffice.reading import messages_of, words
from tests.backoffice.reservation_pages import action_url, confirm, offered
from tests.factories_people import AdministratorFactory, SavedCardFactory
from tests.factories_reservations import START, get_current_status, make_booking, make_draft

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

ACTION = "take-payment"


def take(office, draft, way, **data):
    data = {"way": way, "expected_amount": str(draft.total_cost), **data}
    return messages_of(confirm(office, draft, ACTION, **data))


def test_cash_books_and_shows_what_was_paid(office, clock):
    draft, late = make_draft(), make_draft()
    assert ACTION in offered(office, draft)

    preview = words(office.post(action_url(draft, ACTION), {"way": "cash"}))
    assert "New status Confirmed" in preview
    assert "Price $75.00" in preview
    assert get_current_status(draft) == Status.NEW

    done = take(office, draft, "cash")

    assert done == [("success", f"{draft}: Confirmed. $75.00 was paid in cash.")]
    assert get_current_status(draft) == Status.CONFIRMED
    assert ACTION not in offered(office, draft)
    assert take(office, draft, "cash")[0][0] == "error"
    assert Payment.objects.count() == 1
    clock.move_to(START)
    office.force_login(AdministratorFactory())
    assert ACTION not in offered(office, late)


def test_terminal_needs_its_slip_and_an_outdated_price_is_refused(office):
    draft = make_draft()

    for slip in ("", " . ", "\u200b"):
        page = confirm(office, draft, ACTION, way="terminal", reference=slip)
        assert "Enter the number of the terminal" in words(page)
    unseen = confirm(office, draft, ACTION, way="terminal", reference="17")
    assert "amount that you have seen is missing" in messages_of(unseen)[0][1]
    stale = take(office, draft, "terminal", reference="17", expected_amount="70.00")
    assert "The price has changed" in stale[-1][1]
    assert get_current_status(draft) == Status.NEW
    # A slip that is confirmed twice is recorded once.
    draft.notes.all().delete()
    for _ in range(2):
        take(office, draft, "terminal", reference="17")
    assert Payment.objects.get().reference == "17"
    assert not draft.notes.exists()


@pytest.mark.parametrize("is_too_late", [True, False])
def test_slip_of_a_refused_payment_is_kept_in_a_note(office, clock, is_too_late):
    draft = make_draft()
    if is_too_late:
        clock.move_to(START)
        office.force_login(AdministratorFactory())
    slip = {"reference": "17", "expected_amount": "75.00" if is_too_late else "70.00"}
    [(level, text)] = take(office, draft, "terminal", **slip)[-1:]

    assert (level, "A note keeps the number of the slip" in text) == ("error", True)
    refused = "Card terminal, slip 17: it was entered when “Take payment” was refused."
    assert draft.notes.get().text == refused
    if not is_too_late:
        take(office, draft, "terminal", reference="17")
        assert (Payment.objects.get().reference, draft.notes.get().text) == ("17", refused)


def test_slip_of_an_invalid_form_is_kept_and_that_of_an_action_without_payment_is_not(office):
    booking = make_booking()
    terminal = {"way": "terminal", "reference": "9"}

    confirm(office, booking, "check-in", **terminal)
    assert not booking.notes.exists()
    # It lasts that long already, because a colleague was faster.
    page = confirm(office, booking, "extend", end_0="2027-03-03", end_1="12:00", **terminal)

    assert "A note keeps the number of the slip" in words(page)
    assert "slip 9" in booking.notes.get().text


def test_account_is_offered_within_the_customers_limit(office):
    draft = make_draft()
    assert 'value="account"' not in office.get(action_url(draft, ACTION)).content.decode()
    User.objects.filter(pk=draft.user_id).update(credit_limit=50)

    preview = words(office.post(action_url(draft, ACTION), {"way": "account"}))
    assert "owes $0.00 of at most $50.00" in preview
    assert "Choose another way" in take(office, draft, "account")[0][1]

    User.objects.filter(pk=draft.user_id).update(credit_limit=75)
    assert take(office, draft, "account", reference="PO 9")[-1][0] == "success"
    assert Payment.objects.get().received_at is None


def test_saved_card_needs_consent_which_the_history_records(office):
    card = SavedCardFactory()
    draft = make_draft(card.user)

    page = office.post(action_url(draft, ACTION), {"way": "card", "confirmed": "yes"})
    assert "Ask the customer first" in words(page)
    done = take(office, draft, "card", consent="on")

    assert done == [("success", f"{draft}: Confirmed. $75.00 was charged to Visa ending 4242.")]
    *_, consent = history.get_changes(draft)
    assert consent.changes["consent_to_charge"] == [None, "Visa ending 4242"]
    assert consent.actor.get_full_name() == "Root Boss"


def test_saved_card_whose_bank_asks_the_customer_is_declined(office):
    card = SavedCardFactory(outcome="requires_action", saved_by_setup=True)
    draft = make_draft(card.user)

    done = take(office, draft, "card", consent="on")

    assert "bank asks the customer for a confirmation. Nothing was charged" in done[0][1]
    assert declines.REQUIRES_ACTION not in done[0][1]
    assert get_current_status(draft) == Status.NEW


def test_free_draft_is_booked_without_a_way(office):
    draft = make_draft()
    confirm(office, draft, "adjust", amount="-75", reason="Guest", expected_amount="0.00")
    draft.refresh_from_db()
    assert draft.total_cost == 0

    done = messages_of(confirm(office, draft, ACTION, expected_amount="0.00"))

    assert done[-1] == ("success", f"{draft}: Confirmed. There was nothing to pay.")


def test_payment_link_is_sent_and_the_draft_stays_held(office):
    draft = make_draft()

    preview = words(office.post(action_url(draft, ACTION), {"way": "link"}))
    assert "with the link" in preview
    assert "Held until" in preview
    done = take(office, draft, "link")

    assert "The link is sent within a minute" in done[0][1]
    message = OutboxMessage.objects.get(kind="payment link")
    assert (message.to, "http://testserver/pay/" in message.text) == (draft.user.email, True)
    assert get_current_status(draft) == Status.NEW
