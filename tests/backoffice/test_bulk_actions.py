"""Actions on several reservations at once, through HTTP requests."""

import re

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import OutboxMessage
from payments.models import Refund
from reservations.models import Partner, Reservation
from reservations.models.status import Status
from roombook.backoffice.model_admin import ModelAdmin
from tests.backoffice.many import many
from tests.backoffice.reading import get_hidden_fields, messages_of, words
from tests.backoffice.reservation_pages import DAY, LIST
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    START,
    PartnerFactory,
    get_current_status,
    make_booking,
    make_pending_booking,
    make_room,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]


def act(office, name, *reservations, **more):
    data = {"action": name, "_selected_action": [row.pk for row in reservations], **more}
    return office.post(LIST, data)


def test_bulk_action_shows_a_preview_then_skips_impossible_reservations(office):
    pending, confirmed = make_pending_booking(), make_booking()

    page = act(office, "approve", pending, confirmed)

    assert "$75.00 from Visa" in words(page)
    assert "Not possible, the status is Confirmed." in words(page)
    assert page.context["possible"] == 1
    assert get_current_status(pending) == Status.PENDING
    done = act(office, "approve", pending, confirmed, confirmed="yes")
    assert done.url == LIST
    assert [level for level, _ in messages_of(done)] == ["success", "error"]
    assert get_current_status(pending) == Status.CONFIRMED


def test_bulk_action_executes_each_action(office, clock):
    confirmed = make_booking()
    for name, status in (("decline", Status.DECLINED), ("cancel", Status.CANCELLED)):
        pending = make_pending_booking()
        act(office, name, pending, confirmed="yes")
        assert get_current_status(pending) == status
    clock.move_to(START + HOUR)
    office.force_login(AdministratorFactory())
    act(office, "mark_no_show", confirmed, confirmed="yes")
    assert get_current_status(confirmed) == Status.NO_SHOW


def test_bulk_action_invalid_ids_are_refused(office):
    for model, page in admin.site._registry.items():
        if not page.actions:
            continue
        address = reverse(f"admin:{model._meta.label_lower.replace('.', '_')}_changelist")
        for ticked in ("²", "-1", "1.5", "9" * 40, ""):
            fields = {"action": page.actions[0], "_selected_action": [ticked]}
            response = office.post(address, fields)
            assert response.status_code == 302, (model, ticked)
            assert "Nothing was changed" in messages_of(response)[-1][1], (model, ticked)


def expected_amounts_on(page):
    return dict(re.findall(r'name="(expected_amount_\d+)" value="([^"]*)"', page.content.decode()))


def test_bulk_cancel_refunds_previewed_amounts_only(office):
    first, second = make_booking(), make_booking()
    shown = expected_amounts_on(act(office, "cancel", first, second))
    assert shown == {f"expected_amount_{each.pk}": "75.00" for each in (first, second)}
    for text in ("", "x", "NaN", "sNaN", "Infinity", "1e999999"):
        act(office, "cancel", first, confirmed="yes", **{f"expected_amount_{first.pk}": text})
    assert get_current_status(first) == Status.CONFIRMED

    act(office, "cancel", first, second, confirmed="yes", **shown)

    assert get_current_status(first) == get_current_status(second) == Status.CANCELLED


def test_bulk_cancel_changed_refund_is_refused(office, clock):
    late, early = make_booking(), make_booking(start=START + 7 * DAY)
    shown = expected_amounts_on(act(office, "cancel", late, early))
    clock.move_to(START - HOUR)
    office.force_login(AdministratorFactory())

    done = act(office, "cancel", late, early, confirmed="yes", **shown)

    assert [level for level, _ in messages_of(done)] == ["error", "success"]
    text = "The refund has changed: it comes to $0.00 now. Nothing was done."
    assert text in messages_of(done)[0][1]
    assert get_current_status(late) == Status.CONFIRMED
    assert get_current_status(early) == Status.CANCELLED


def test_bulk_cancel_with_another_refund_and_message_is_previewed_first(office, clock):
    bookings = make_booking(), make_booking(start=START + HOUR * 4)
    clock.move_to(START - HOUR)
    office.force_login(AdministratorFactory())
    typed = {"everything": "on", "message": "We are sorry."}

    page = act(office, "cancel", *bookings, **typed)
    assert "A refund that the policy does not give needs a reason." in words(page)
    assert page.context["possible"] == 0
    page = act(office, "cancel", *bookings, reason="Broken heating", **typed)
    assert "We are sorry." in page.context["email"].text
    assert not OutboxMessage.objects.filter(kind="cancelled").exists()
    shown = expected_amounts_on(page)
    assert shown == {f"expected_amount_{each.pk}": "75.00" for each in bookings}
    office.post(LIST, get_hidden_fields(page) | {"confirmed": "yes"})

    assert [get_current_status(each) for each in bookings] == [Status.CANCELLED] * 2
    assert [refund.amount for refund in Refund.objects.all()] == [75, 75]
    mails = OutboxMessage.objects.filter(kind="cancelled", text__contains="We are sorry.")
    assert mails.count() == 2


def test_bulk_action_is_limited_to_100_rows(office):
    rows = many(make_room(), UserFactory(), 101, start=START, status=Status.CONFIRMED)
    with CaptureQueriesContext(connection) as queries:
        refused = act(office, "cancel", rows[0], select_across="1")
    assert "at most 100 rows at a time. Search or filter" in messages_of(refused)[0][1]
    assert len(queries) < 15
    done = act(office, "cancel", *rows, confirmed="yes")
    assert "Nothing was changed." in messages_of(done)[0][1]
    assert not Reservation.objects.filter(status=Status.CANCELLED).exists()
    Reservation.objects.filter(pk=rows[-1].pk).delete()
    assert act(office, "cancel", rows[0], select_across="1").context["possible"] == 100


def test_confirmed_bulk_action_affects_previewed_rows_only(office):
    shown, other = make_booking(), make_booking()
    act(office, "cancel", shown, select_across="1", confirmed="yes")
    assert get_current_status(shown) == Status.CANCELLED
    assert get_current_status(other) == Status.CONFIRMED
    # Django's own deletion, too.
    partner, kept = PartnerFactory(), PartnerFactory()
    data = {"action": "delete_selected", "_selected_action": [partner.pk], "select_across": "1"}
    office.post(reverse("admin:reservations_partner_changelist"), {**data, "post": "yes"})
    assert list(Partner.objects.all()) == [kept]


def test_every_list_limits_action_rows(office, monkeypatch):
    monkeypatch.setattr(ModelAdmin, "max_action_rows", -1)
    for model, action in (
        ("accounts_user", "sign_out_all_devices"),
        ("accounts_outboxmessage", "send_again"),
        ("centers_meetingroom", "take_out_of_service"),
        ("payments_refund", "retry"),
        ("payments_refund", "mark_refunded_manually"),
        ("reservations_partner", "delete_selected"),
    ):
        address = reverse(f"admin:{model}_changelist")
        for is_all in ("0", "1"):
            data = {"action": action, "_selected_action": ["1"], "select_across": is_all}
            assert "rows at a time" in messages_of(office.post(address, data))[-1][1], model
