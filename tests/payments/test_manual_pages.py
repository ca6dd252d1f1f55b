"""Staff confirm manual refunds, and mark payments on account as received (B26.4, B26.5)."""

import pytest
from django.contrib.auth.models import Group
from django.urls import reverse
from django.utils import timezone

from payments.models import Payment, Refund, RefundState
from reservations.booking.cancellation import cancel
from reservations.booking.taking_payment import take_manual_payment
from roombook.backoffice.models import AuditEntry
from tests.factories_people import AdministratorFactory, StaffFactory, UserFactory
from tests.factories_reservations import NOW, make_draft

pytestmark = pytest.mark.django_db


def take(gateway):
    customer = UserFactory(credit_limit=500)
    return take_manual_payment(
        make_draft(customer), gateway=gateway, by=AdministratorFactory(), now=NOW
    )


def sign_in(client, role):
    staff = StaffFactory()
    staff.groups.add(Group.objects.get(name=role))
    client.force_login(staff)


def test_manager_confirms_a_refund_by_hand_with_its_reference(client):
    cancel(take("cash").pk, now=NOW)
    refund = Refund.objects.get()
    page = reverse("admin:payments_refund_change", args=[refund.pk])
    data = {"action": "confirm_by_hand", "_selected_action": refund.pk, "from_page": "yes"}
    changelist = reverse("admin:payments_refund_changelist")

    sign_in(client, "Desk")
    assert "confirm_by_hand" not in client.get(page).content.decode()
    client.post(changelist, {**data, "confirmed": "yes", "reference": "Receipt 4"})
    assert Refund.objects.get().state == RefundState.STARTED

    sign_in(client, "Manager")
    assert 'value="confirm_by_hand"' in client.get(page).content.decode()
    assert "Reference" in client.post(changelist, data).content.decode()
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

    assert "$75.00 received" in answer.content.decode()
    payment.refresh_from_db()
    assert payment.received_at <= timezone.now()
    assert not client.get(url, {"owed": "yes"}).context["cl"].result_list
