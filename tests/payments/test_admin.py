"""Money in the back office: to look at, but for refunds that the gateway refused."""

from decimal import Decimal

import pytest
from auditlog.models import LogEntry
from django.contrib.auth.models import Permission
from django.urls import reverse

from payments import processing
from payments.gateways.base import GatewayRefused
from payments.gateways.sandbox_models import SandboxFault, SandboxPayment
from payments.models import Payment, Refund
from tests.factories_people import AdministratorFactory, SavedCardFactory, UserFactory
from tests.payments.test_payments import NOW, ada, captured, reservation, start  # noqa: F401 (fixtures)  # noqa: F401 (fixtures)

pytestmark = pytest.mark.django_db


def told():
    """What the history of refunds says."""
    return LogEntry.objects.get(content_type__model="refund").additional_data["note"]


@pytest.fixture(autouse=True)
def _root(client):
    client.force_login(AdministratorFactory())


def test_a_saved_card_shows_brand_and_last_four_and_no_reference(client):
    card = SavedCardFactory()

    for page in (
        client.get(reverse("admin:payments_savedcard_changelist"), {"q": card.user.email}),
        client.get(reverse("admin:payments_savedcard_change", args=[card.pk])),
    ):
        text = page.content.decode()
        assert page.status_code == 200
        assert "Visa" in text
        assert "4242" in text
        assert card.reference not in text


def test_payments_and_refunds_are_shown(client, captured):  # noqa: F811
    refund = processing.create_refund(captured, amount=captured.amount, reason="Rain", now=NOW)

    for page in (
        client.get(reverse("admin:payments_payment_changelist"), {"q": captured.reference}),
        client.get(reverse("admin:payments_payment_change", args=[captured.pk])),
        client.get(
            reverse("admin:payments_refund_changelist"), {"q": str(captured.reservation_id)}
        ),
        client.get(reverse("admin:payments_refund_change", args=[refund.pk])),
    ):
        assert page.status_code == 200
        assert "50.00" in page.content.decode()


def test_nobody_changes_them_by_hand(client, captured):  # noqa: F811
    card = SavedCardFactory()
    refund = processing.create_refund(captured, amount=captured.amount, reason="Rain", now=NOW)

    for model, row in (("payment", captured), ("refund", refund), ("savedcard", card)):
        assert client.get(reverse(f"admin:payments_{model}_add")).status_code == 403
        for page in ("change", "delete"):
            url = reverse(f"admin:payments_{model}_{page}", args=[row.pk])
            assert client.post(url, {"post": "yes", "state": "voided"}).status_code == 403
    assert Payment.objects.get().state == "captured"


# --- Refunds that the gateway refused ------------------------------------------------------------

REFUNDS = "admin:payments_refund_changelist"


@pytest.fixture
def refused(captured):  # noqa: F811
    """Twenty of fifty that the gateway did not want to pay back."""
    refund = processing.create_refund(captured, amount=Decimal("20.00"), reason="Rain", now=NOW)
    SandboxPayment.objects.update(refunded=Decimal("50.00"))
    with pytest.raises(GatewayRefused):
        processing.execute_refund(refund, now=NOW)
    SandboxPayment.objects.update(refunded=0)
    return refund


def act(client, action, refund, **fields):
    fields |= {"action": action, "_selected_action": [refund.pk]}
    return client.post(reverse(REFUNDS), fields, follow=True).content.decode()


def states():
    return list(Refund.objects.order_by("pk").values_list("state", flat=True))


def test_a_refused_refund_is_tried_again_once(client, refused):
    assert "20.00 of payment" in (page := act(client, "try_again", refused))
    assert "paid back." in page
    assert "tried again already" in act(client, "try_again", refused)
    assert "tried again already" in act(
        client, "settle_outside", refused, confirmed="yes", reason="Cash"
    )

    assert states() == ["refused", "done"]
    assert SandboxPayment.objects.get().refunded == 20
    assert "Tried again as refund" in told()


def test_only_what_is_left_is_tried_again(client, refused, captured):  # noqa: F811
    processing.execute_refund(
        processing.create_refund(captured, amount=Decimal("45.00"), reason="", now=NOW), now=NOW
    )

    assert "5.00 of payment" in act(client, "try_again", refused)

    captured.refresh_from_db()
    assert captured.state == "refunded"
    assert SandboxPayment.objects.get().refunded == 50


def test_staff_are_told_when_it_is_refused_again(client, refused):
    SandboxPayment.objects.update(refunded=Decimal("50.00"))

    assert "the gateway refused again" in act(client, "try_again", refused)
    assert states() == ["refused", "refused"]


def test_without_an_answer_it_stays_owed(client, refused):
    SandboxFault.objects.create(operation="refund", kind="timeout_after", times=1)

    assert "does not answer" in act(client, "try_again", refused)
    assert states() == ["refused", "started"]


def test_what_was_given_back_another_way_is_settled_outside(client, refused, captured):  # noqa: F811
    assert "How it was given back" in act(client, "settle_outside", refused)
    # Words are asked for.
    assert "This field is required" in act(
        client, "settle_outside", refused, confirmed="yes", reason=" "
    )
    assert states() == ["refused"]

    act(client, "settle_outside", refused, confirmed="yes", reason="Bank transfer 17")

    refund = Refund.objects.get()
    assert (refund.state, refund.reason) == ("outside", "Bank transfer 17 (Rain)")
    assert refund.done_at is not None
    assert processing.get_refundable_amount(captured) == 30
    assert SandboxPayment.objects.get().refunded == 0
    assert told() == "Settled outside: Bank transfer 17"
    assert "not refused" in act(client, "try_again", refused)


def test_a_payment_whose_rest_is_settled_outside_is_refunded(client, refused, captured):  # noqa: F811
    rest = processing.create_refund(captured, amount=Decimal("30.00"), reason="", now=NOW)
    processing.execute_refund(rest, now=NOW)

    act(client, "settle_outside", refused, confirmed="yes", reason="Cash")

    captured.refresh_from_db()
    assert captured.state == "refunded"


def test_what_others_gave_back_is_not_settled_outside_as_well(client, refused, captured):  # noqa: F811
    processing.create_refund(captured, amount=Decimal("45.00"), reason="", now=NOW)

    assert "Other refunds gave back" in act(
        client, "settle_outside", refused, confirmed="yes", reason="Cash"
    )
    assert states() == ["refused", "started"]


@pytest.mark.parametrize("action", ["try_again", "settle_outside"])
def test_who_may_only_look_at_refunds_does_not_see_to_them(client, refused, action):
    clerk = UserFactory(is_staff=True)
    clerk.user_permissions.add(Permission.objects.get(codename="view_refund"))
    client.force_login(clerk)

    act(client, action, refused, confirmed="yes", reason="Cash")

    assert states() == ["refused"]
