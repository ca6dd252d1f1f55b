"""The history: who changed what, when, from what to what, in words (B18)."""

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import CenterRole
from reservations.models import Allowance, PromoCode
from roombook.backoffice import audit_log
from roombook.backoffice.audit_display import load_field_changes
from roombook.backoffice.models import AuditAction, AuditEntry
from tests import factories_centers as make
from tests.admin_forms import form_of
from tests.factories_people import AdministratorFactory, StaffFactory, UserFactory, issue_token
from tests.http import post

pytestmark = pytest.mark.django_db

LOG = reverse("admin:backoffice_auditentry_changelist")


@pytest.fixture
def root(client):
    user = AdministratorFactory(first_name="Rita", last_name="Root")
    client.force_login(user)
    return user


def lines_of(row):
    entries = AuditEntry.objects.filter(
        content_type__app_label=row._meta.app_label,
        content_type__model=row._meta.model_name,
        object_id=row.pk,
    )
    return [
        (entry.actor_name, entry.get_action_display(), entry.summary)
        for entry in load_field_changes(entries.select_related("actor").order_by("pk"))
    ]


def page_of(client, row):
    opts = row._meta
    return client.get(
        reverse(f"admin:{opts.app_label}_{opts.model_name}_history", args=[row.pk])
    ).text


def test_every_editable_model_is_tracked():
    """What has a page of its own has a history; the rest is read-only, or money's own ledger."""
    elsewhere = {
        *("Reservation", "Payment", "Refund", "Dispute", "SavedCard", "OutboxMessage"),
        *("AuditEntry", "UnknownPayment", "WebhookDelivery", "Receipt", "LedgerLine"),
    }
    edited = {
        model._meta.concrete_model
        for model in admin.site._registry
        if model.__name__ not in elsewhere
    }

    assert edited <= set(audit_log.get_tracked_models())


def test_change_is_recorded_with_actor_old_and_new_values(client, root):
    rate = make.RateFactory(name="By the hour", hourly="25.00")
    other = make.RateFactory(center=rate.center, name="Evening")
    room = make.MeetingRoomFactory(center=rate.center, rate=rate)
    address = reverse("admin:centers_meetingroom_change", args=[room.pk])

    answer = client.post(
        address, {**form_of(client.get(address)), "capacity": "12", "rate": other.pk}
    )

    assert answer.status_code == 302
    who, action, words = lines_of(room)[-1]
    assert (who, action) == ("Rita Root", "Changed")
    assert "Capacity: 8 → 12" in words
    assert f"Rate: {rate} → {other}" in words
    assert "<del>8</del> → 12" in page_of(client, room)


def test_changes_outside_a_request_are_those_of_the_service_without_empty_fields():
    landmark = make.LandmarkFactory(name="Station", description="")
    pk = landmark.pk
    landmark.delete()

    landmark.pk = pk
    made, (who, deleted, gone) = lines_of(landmark)
    assert made == ("the service", "Created", f"Center: {landmark.center}; Name: Station")
    assert (who, deleted, "Name: Station" in gone) == ("the service", "Deleted", True)


def test_many_to_many_changes_are_recorded_by_name_and_excluded_fields_are_not():
    promo = PromoCode.objects.create(code="SPRING", percent=10)
    center = make.CenterFactory(name="Glenarm")
    promo.centers.add(center)
    promo.centers.remove(center)
    promo.uses = 1
    with CaptureQueriesContext(connection) as queries:
        promo.save(update_fields=["uses"])

    recorded = [words for _, _, words in lines_of(promo)][1:]
    assert recorded == ["Centers: added Glenarm", "Centers: removed Glenarm"]
    assert len(queries) == 1


def test_personal_data_is_recorded_without_values():
    ada = UserFactory(email="ada@example.com", phone_number="+1 555 0100", company_name="")
    ada.email, ada.phone_number, ada.is_active = "countess@example.com", "+1 555 0199", False
    ada.save()
    ada.set_password("noisy-harbour-43")
    ada.save()
    allowance = Allowance.objects.create(user=ada, description="Hours", hours=1)

    for entry in AuditEntry.objects.all():
        text = f"{entry.object_name} {entry.changes} {entry.actor_email}"
        for secret in ("@example.com", "555", "Lovelace", "argon2", "md5"):
            assert secret not in text, text
    changed = lines_of(ada)[1][2]
    assert "E-mail address: not kept → not kept" in changed
    assert "Active: yes → no" in changed
    assert "User: Ada Lovelace" in lines_of(allowance)[0][2]


def test_profile_change_by_customer_names_customer_as_actor(client):
    ada = UserFactory()
    post(client, "/api/account/update-info", {"Token": issue_token(ada), "NewLastName": "King"})

    assert lines_of(ada)[-1][0] == "Ada King (customer)"


def looks():
    return [
        (entry.actor, entry.object_id)
        for entry in AuditEntry.objects.filter(action=AuditAction.VIEW)
    ]


def test_view_of_a_customer_is_recorded_once(client, root):
    ada = UserFactory()
    page = reverse("admin:accounts_user_change", args=[ada.pk])

    client.get(page)
    client.post(page, {})

    assert looks() == [(root, ada.pk)]


def test_no_view_is_recorded_when_nothing_was_shown(client, groups, world):
    clerk = StaffFactory()
    CenterRole.objects.create(user=clerk, center=world.center, group=groups["Desk"])
    client.force_login(clerk)

    client.get(reverse("admin:accounts_user_change", args=[world.bob.pk]))
    client.get(reverse("admin:accounts_user_changelist"))
    client.get(reverse("admin:accounts_user_history", args=[world.ada.pk]))

    assert looks() == []


def test_views_are_shown_to_accountants_only(client, staff, world):
    looker = StaffFactory(first_name="Lou", last_name="Keen")
    audit_log.record_views([world.ada], by=looker)
    for role, status in (("Accountant", 200), ("Manager", 403), ("Desk", 403)):
        client.force_login(staff(role))
        listed = client.get(LOG)
        assert listed.status_code == status, role
        assert ("Lou Keen" in listed.text) == (status == 200), role
        assert "Lou Keen" not in page_of(client, world.ada), role


def test_audit_log_is_searched_by_id_and_by_actor_and_read_only(client, root):
    center = make.CenterFactory(name="Glenarm")
    other = StaffFactory(email="sam@example.com")
    audit_log.record_change(center, {"name": ("Old", "Glenarm")}, by=other)

    for query in ({"q": "sam@example.com"}, {"q": f"#{center.pk}", "what": "centers.center"}):
        page = client.get(LOG, query)
        assert page.status_code == 200
        assert "Name: Old → Glenarm" in page.text
    assert "Old → Glenarm" not in client.get(LOG, {"q": "root@example.com"}).text
    entry = AuditEntry.objects.first()
    for name, args in (("add", []), ("change", [entry.pk]), ("delete", [entry.pk])):
        address = reverse(f"admin:backoffice_auditentry_{name}", args=args)
        assert client.post(address, {"post": "yes"}).status_code == 403
