"""Payments, refunds and saved cards in the back office: read-only, except for refused refunds."""

from decimal import Decimal

import pytest
from django.contrib.auth.models import Group, Permission
from django.urls import reverse
from django.utils import timezone

from accounts.act import Act
from accounts.models import CenterRole
from payments import refunds
from payments.gateways.base import GatewayRefused
from payments.gateways.sandbox_models import SandboxPayment
from payments.models import Payment, Refund, RefundState, UnknownPayment
from reservations.booking.cancellation import cancel
from reservations.booking.checkout import book_draft
from roombook.backoffice.models import AuditEntry
from tests.factories_centers import MeetingRoomFactory
from tests.factories_people import AdministratorFactory, SavedCardFactory, StaffFactory, UserFactory
from tests.factories_reservations import NOW as BOOKED_AT
from tests.factories_reservations import make_draft
from tests.gateway_faults import add_fault
from tests.payments.gateway_helpers import NOW

pytestmark = pytest.mark.django_db


def get_logged_note():
    return AuditEntry.objects.get(content_type__model="refund").note


@pytest.fixture(autouse=True)
def _administrator(client):
    client.force_login(AdministratorFactory())


def test_saved_card_page_shows_brand_and_last_four_but_no_reference(client):
    card = SavedCardFactory()

    for page in (
        client.get(reverse("admin:payments_savedcard_changelist"), {"q": card.user.email}),
        client.get(reverse("admin:payments_savedcard_change", args=[card.pk])),
    ):
        text = page.text
        assert page.status_code == 200
        assert "Visa" in text
        assert "4242" in text
        assert card.reference not in text


def test_payments_refunds_and_cards_cannot_be_edited(client, captured):
    card = SavedCardFactory()
    refund = refunds.create_refund(captured, amount=captured.amount, reason="Rain", now=NOW)

    for model, row in (("payment", captured), ("refund", refund), ("savedcard", card)):
        assert client.get(reverse(f"admin:payments_{model}_add")).status_code == 403
        for page in ("change", "delete"):
            url = reverse(f"admin:payments_{model}_{page}", args=[row.pk])
            assert client.post(url, {"post": "yes", "state": "voided"}).status_code == 403
    assert Payment.objects.get().state == "captured"


# --- Refunds that the gateway refused -------------------------------------------------------------


@pytest.fixture
def refused(captured):
    """A refund of 20 out of 50 that the gateway refused."""
    refund = refunds.create_refund(captured, amount=Decimal("20.00"), reason="Rain", now=NOW)
    SandboxPayment.objects.update(refunded=Decimal("50.00"))
    with pytest.raises(GatewayRefused):
        refunds.execute_refund(refund, now=NOW)
    SandboxPayment.objects.update(refunded=0)
    # It pays for a booking: otherwise the rest is due for a refund too.
    Payment.objects.update(counts=True)
    return refund


def run_action(client, action, row, name="refund", **fields):
    fields |= {"action": action, "_selected_action": [row.pk]}
    url = reverse(f"admin:payments_{name}_changelist")
    return client.post(url, fields, follow=True).text


IN_CASH = {"confirmed": "yes", "method": "Cash", "reference": "receipt 17"}


def get_states():
    return list(Refund.objects.order_by("pk").values_list("state", flat=True))


def test_refused_refund_can_be_retried_once(client, refused):
    own = client.get(reverse("admin:payments_refund_change", args=[refused.pk])).text
    assert "Ada Lovelace has not received the $20.00" in own
    assert 'value="retry"' in own
    assert "20.00 of payment" in (page := run_action(client, "retry", refused))
    assert "refunded." in page
    assert "already retried" in run_action(client, "retry", refused)
    assert "already retried" in run_action(client, "mark_refunded_manually", refused, **IN_CASH)

    assert get_states() == ["refused", "done"]
    assert SandboxPayment.objects.get().refunded == 20
    assert "Retried as refund" in get_logged_note()


def test_retry_refused_again_shows_an_error(client, refused):
    SandboxPayment.objects.update(refunded=Decimal("50.00"))

    assert "the gateway refused again" in run_action(client, "retry", refused)
    assert get_states() == ["refused", "refused"]


def test_retry_without_gateway_answer_stays_started(client, refused):
    add_fault(operation="refund", kind="timeout_after", times=1)

    assert "does not respond" in run_action(client, "retry", refused)
    assert get_states() == ["refused", "started"]


def test_retry_beside_one_that_is_refused_again_is_made_and_reported_as_such(
    client, refused, captured
):
    add_fault(operation="refund", kind="timeout_before", times=1)
    run_action(client, "retry", refused)
    other = refunds.create_refund(captured, amount=Decimal("10.00"), reason="Snow", now=NOW)
    Refund.objects.filter(pk=other.pk).update(state="refused", done_at=NOW)
    SandboxPayment.objects.update(refunded=Decimal("35.00"))

    page = run_action(client, "retry", other)

    assert f"10.00 of payment {captured.pk}: refunded." in page
    assert get_states() == ["refused", "refused", "refused", "done"]


def test_refused_refund_can_be_marked_as_refunded_manually(client, refused, captured):
    assert "How the money was returned" in run_action(client, "mark_refunded_manually", refused)
    for missing in ("method", "reference"):
        form = IN_CASH | {missing: " "}
        assert "This field is required" in run_action(
            client, "mark_refunded_manually", refused, **form
        )
    assert get_states() == ["refused"]

    run_action(client, "mark_refunded_manually", refused, **IN_CASH)

    refund = Refund.objects.get()
    assert (refund.state, refund.reason) == ("outside", "Cash, receipt 17 (Rain)")
    assert refund.done_at is not None
    assert refunds.get_refundable_amount(captured) == 30
    assert SandboxPayment.objects.get().refunded == 0
    assert get_logged_note() == "Refunded manually: Cash, receipt 17"
    assert "not refused" in run_action(client, "retry", refused)


def test_amount_refunded_elsewhere_cannot_be_refunded_manually(client, refused, captured):
    refunds.create_refund(captured, amount=Decimal("45.00"), reason="", now=NOW)

    assert "Other refunds have already returned" in run_action(
        client, "mark_refunded_manually", refused, **IN_CASH
    )
    assert get_states() == ["refused", "started"]


# --- Unknown payments -----------------------------------------------------------------------------


@pytest.fixture
def unknown(captured):
    """Money at the gateway whose payment a restored backup lacks."""
    key, reference = captured.key, captured.reference
    captured.delete()
    return UnknownPayment.objects.create(
        gateway="sandbox",
        key=key,
        reference=reference,
        description="Reservation 57",
        amount=Decimal("50.00"),
        currency="USD",
        found_at=NOW,
    )


UNKNOWN_LIST = "payments_unknownpayment_changelist"


def run_unknown_action(client, action, row):
    return run_action(client, action, row, "unknownpayment")


def test_unknown_payment_can_be_released_in_the_back_office(client, unknown):
    own = reverse("admin:payments_unknownpayment_change", args=[unknown.pk])
    dashboard, rows = (reverse(f"admin:{name}") for name in ("index", UNKNOWN_LIST))
    page = client.get(dashboard).text
    assert "$50.00 at the gateway for no booking" in page
    assert f'href="{rows}"' in page
    assert unknown.reference in client.get(rows).text
    assert 'value="release">Void or refund</button>' in client.get(own).text
    assert "$50.00: refunded" in run_unknown_action(client, "release", unknown)

    assert SandboxPayment.objects.get().refunded == 50
    unknown.refresh_from_db()
    assert 'value="release">' not in client.get(own).text
    assert (unknown.resolution, unknown.resolved_at is not None) == ("refunded", True)
    assert AuditEntry.objects.get(note="Released: refunded").object_id == unknown.pk
    assert "at the gateway for no booking" not in client.get(dashboard).text
    # Neither is repeated.
    run_unknown_action(client, "keep", unknown)
    unknown.refresh_from_db()
    assert unknown.resolution == "refunded"


def test_unknown_payment_can_be_kept_in_the_back_office(client, unknown):
    assert ": kept." in run_unknown_action(client, "keep", unknown)

    run_unknown_action(client, "release", unknown)
    assert SandboxPayment.objects.get().refunded == 0


def test_unknown_payment_that_cannot_be_released_stays(client, unknown):
    add_fault(operation="refund", kind="error", times=1)

    assert "does not answer" in run_unknown_action(client, "release", unknown)

    unknown.refresh_from_db()
    assert unknown.resolved_at is None


@pytest.mark.parametrize("who", ["viewer", "accountant of a center", "accountant"])
def test_only_accountants_of_all_centers_release_unknown_payments(client, unknown, who):
    staff, role = StaffFactory(), Group.objects.get(name="Accountant")
    if who == "viewer":
        staff.user_permissions.add(Permission.objects.get(codename="view_unknownpayment"))
    elif who == "accountant":
        staff.groups.add(role)
    else:
        CenterRole.objects.create(user=staff, group=role, center=MeetingRoomFactory().center)
    client.force_login(staff)

    page = client.get(reverse("admin:index")).text
    assert ("at the gateway for no booking" in page) == (who == "accountant")
    run_unknown_action(client, "release", unknown)

    unknown.refresh_from_db()
    assert (unknown.resolution == "refunded") == (who == "accountant")


def test_unknown_payment_without_money_is_released_by_deleting_it(client, unknown):
    """A webhook has mentioned it, and its status was not fetched from the gateway yet."""
    SandboxPayment.objects.all().delete()
    UnknownPayment.objects.update(currency="", amount=0)

    assert "no money held" in run_unknown_action(client, "release", unknown)

    assert not UnknownPayment.objects.exists()


# --- Manual refunds, and payments on account (B26.4, B26.5) ---------------------------------------


def take(gateway):
    customer = UserFactory(credit_limit=500)
    return book_draft(
        Act(AdministratorFactory(), BOOKED_AT, is_staff=True),
        make_draft(customer).pk,
        gateway=gateway,
    )


def sign_in(client, role):
    staff = StaffFactory()
    staff.groups.add(Group.objects.get(name=role))
    client.force_login(staff)


def test_manager_confirms_a_refund_by_hand_with_its_reference(client):
    cancel(Act(None, BOOKED_AT), take("cash").pk)
    refund = Refund.objects.get()
    page = reverse("admin:payments_refund_change", args=[refund.pk])
    data = {"action": "confirm_by_hand", "_selected_action": refund.pk, "from_page": "yes"}
    changelist = reverse("admin:payments_refund_changelist")

    sign_in(client, "Desk")
    assert "confirm_by_hand" not in client.get(page).text
    client.post(changelist, {**data, "confirmed": "yes", "reference": "Receipt 4"})
    assert Refund.objects.get().state == RefundState.STARTED

    sign_in(client, "Manager")
    assert 'value="confirm_by_hand"' in client.get(page).text
    assert "Reference" in client.post(changelist, data).text
    answer = client.post(changelist, {**data, "confirmed": "yes", "reference": "Receipt 4"})

    assert answer.headers["Location"] == page
    refund.refresh_from_db()
    assert (refund.state, refund.reference) == (RefundState.DONE, "Receipt 4")
    assert "Receipt 4" in AuditEntry.objects.get(content_type__model="refund").note


def test_accountant_finds_what_is_owed_and_marks_it_as_received(client):
    owed, _ = take("account"), take("cash")
    url = reverse("admin:payments_payment_changelist")
    payment = Payment.objects.get(reservation=owed)
    data = {"action": "mark_received", "_selected_action": payment.pk}
    sign_in(client, "Desk")
    client.post(url, data)
    assert Payment.objects.get(pk=payment.pk).received_at is None

    sign_in(client, "Accountant")
    assert list(client.get(url, {"owed": "yes"}).context["cl"].result_list) == [payment]
    answer = client.post(url, data, follow=True)

    assert "$75.00 received" in answer.text
    payment.refresh_from_db()
    assert payment.received_at <= timezone.now()
    assert not client.get(url, {"owed": "yes"}).context["cl"].result_list
