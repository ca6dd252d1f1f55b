"""POST /api/account/export"""

import json
from datetime import timedelta

import pytest

from accounts import account_export
from accounts.models import OutboxMessage
from accounts.models.outbox_message import SECRET_KINDS
from reservations.models import RefundOverride
from roombook.backoffice.audit_log import build_entry
from roombook.backoffice.models import AuditAction
from roombook.deliveries import DeliveryState
from roombook.imports.resources import IMPORT_NOTE
from tests.erasure_traces import PERSONAL_VALUES, PICTURE, make_leaving_account
from tests.factories_people import PASSWORD, UserFactory, issue_token
from tests.factories_reservations import NOW, PaymentFactory, ReservationFactory
from tests.http import post

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]

PATH = "/api/account/export"


def export(client, token):
    response = post(client, PATH, {"Token": token})
    assert response.status_code == 200, response.content
    return response.json()


def test_export_has_every_personal_value_of_the_account_and_none_of_others(world):
    user = make_leaving_account(world)
    # Hashes, files and network addresses of others are not shown.
    hidden = {"19998887766", PICTURE.decode(), "198.51.100.77"}

    text = json.dumps(export(world.client, world.token), ensure_ascii=False)

    assert [each for each in PERSONAL_VALUES if each not in hidden and each not in text] == []
    document = json.loads(text)["Export"]
    assert {name for name, value in document.items() if not value} == {"PromoCodes"}
    (draft, *_) = document["Reservations"]
    assert {"LineItems", "Services", "Attendees", "Payments", "TotalCost"} <= draft.keys()
    assert document["Account"]["SavedCard"]["Last4Digits"] == "4242"
    for secret in (user.password, world.token, world.bob.email, "pbkdf2", "argon2"):
        assert secret not in text


def test_export_hides_codes_and_links_in_emails(client, ada, token):
    for kind in (*SECRET_KINDS, "confirmed"):
        sent = {"user": ada, "to": ada.email, "kind": kind, "text": f"text of {kind}"}
        OutboxMessage.objects.create(**sent, state=DeliveryState.FAILED, created_at=NOW)

    texts = [each.get("Text") for each in export(client, token)["Export"]["Emails"]]

    assert sorted(texts, key=str) == [*[None] * len(SECRET_KINDS), "text of confirmed"]


def test_export_has_payments_setups_and_reasons_of_staff_but_no_names_of_their_files(
    client, ada, token
):
    row = ReservationFactory(user=ada, status="Expired", hours_override_reason="An evening event.")
    row.price_adjustments.create(amount=-5, reason="It was cold.", by=ada, at=NOW)
    RefundOverride.objects.create(
        reservation=row, policy_refund=0, refund=5, reason="No heating.", by=ada, at=NOW
    )
    payment = PaymentFactory(reservation=row, amount=9, message="The card was declined.")
    payment.refunds.create(amount=5, reason="The room was too small.", created_at=NOW)
    dispute = {"amount": 9, "currency": "USD", "reason": "fraudulent", "status": "lost"}
    payment.disputes.create(reference="dp_1", **dispute, opened_at=NOW, closed_at=NOW)
    setup = {"gateway": "sandbox", "message": "The time is over.", "return_url": "https://a.test/"}
    ada.payment_setups.create(**setup, created_at=NOW, expires_at=NOW + timedelta(hours=1))
    build_entry(ada, AuditAction.UPDATE, note=f"{IMPORT_NOTE}debtors.csv, row 5.").save()

    document = export(client, token)["Export"]

    (booking,) = document["Reservations"]
    assert booking["OutsideOpeningHours"] == "An evening event."
    (adjustment,) = booking["PriceAdjustments"]
    assert (adjustment["Amount"], adjustment["Reason"]) == (-5, "It was cold.")
    assert booking["RefundOverride"]["Refund"] == 5
    assert "No heating." not in json.dumps(document)
    for_staff = account_export.build_export(ada, for_staff=True)
    assert for_staff["Reservations"][0]["RefundOverride"]["Reason"] == "No heating."
    (exported,) = booking["Payments"]
    assert exported["Message"] == "The card was declined."
    assert exported["Refunds"][0]["Reason"] == "The room was too small."
    shown = {"Amount": 9, "Reason": "fraudulent", "Status": "lost"}
    assert exported["Disputes"][0].items() >= shown.items()
    shown = {"State": "open", "Message": "The time is over.", "ReturnUrl": "https://a.test/"}
    assert document["PaymentSetups"][0].items() >= shown.items()
    assert [each["Note"] for each in document["History"] if "Note" in each] == ["Imported."]


def test_export_after_a_change_of_address_does_not_say_whether_the_address_is_taken(client):
    UserFactory(email="taken@example.com")
    exports = []
    for email in ("taken@example.com", "free@example.com"):
        token = issue_token(UserFactory())
        body = {"Token": token, "NewEmailAddress": email, "Password": PASSWORD}
        assert post(client, "/api/account/change-email", body).status_code == 200
        exports.append(export(client, token)["Export"]["Emails"])

    # The notice to the present address.
    assert [len(each) for each in exports] == [1, 1]
    for (email,) in exports:
        del email["To"]
    assert exports[0] == exports[1]


def test_export_has_lists_up_to_a_limit_and_none_for_staff(client, ada, token, monkeypatch):
    for hours in range(5):
        ReservationFactory(user=ada, start=NOW + timedelta(hours=10 * hours), status="Expired")
    ReservationFactory(status="Expired")
    assert len(export(client, token)["Export"]["Reservations"]) == 5

    monkeypatch.setattr(account_export, "MAX_ROWS", 4)
    assert export(client, token) == {
        "Success": True,
        "Message": "Your data is too large for the app. Please contact us, and we send it to you.",
    }
    assert len(account_export.build_export(ada, for_staff=True)["Reservations"]) == 5


def test_exports_are_limited(client, ada, token):
    for _ in range(10):
        export(client, token)

    response = post(client, PATH, {"Token": token})
    assert (response.status_code, response["Retry-After"]) == (429, "3600")
    assert post(client, PATH, {"Token": issue_token(UserFactory())}).status_code == 200
