"""The list of reservations, its export, and its actions on several at once."""

import csv
import re

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from reservations.models import Partner, Reservation
from reservations.models.status import Status
from roombook.backoffice import list_export
from roombook.backoffice.model_admin import ModelAdmin
from tests.backoffice.many import many
from tests.backoffice.reading import list_rows, messages_of, words
from tests.backoffice.reservation_pages import DAY, LIST
from tests.factories_people import AdministratorFactory, UserFactory
from tests.factories_reservations import (
    HOUR,
    NOW,
    START,
    PartnerFactory,
    PromoCodeFactory,
    ReservationFactory,
    get_current_status,
    make_booking,
    make_pending_booking,
    make_room,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]


def export(client, extension, **query):
    address = reverse("admin:reservations_reservation_list_export", args=[extension])
    return client.get(address, query)


def rows_of(response):
    return list(csv.reader(response.getvalue().decode("utf-8-sig").splitlines()))


def test_export_of_reservations_follows_filters_and_order(office):
    ada = UserFactory(company_name="=1+1")
    later = make_booking(ada, number_of_attendees=3)
    sooner = make_booking(ada, room=later.room, start=START - DAY)
    ReservationFactory(start=START)
    ReservationFactory(room=later.room, start=NOW - DAY)

    response = export(office, "csv", room__id__exact=later.room_id)

    header, *rows = rows_of(response)
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert [row[0] for row in rows] == [str(sooner.pk), str(later.pk)]
    values = dict(zip(header, rows[1], strict=True))
    assert (values["Start (local)"], values["Time zone"]) == ("2027-03-03 09:00", "America/Denver")
    assert (values["Company"], values["Total"]) == ("'=1+1", "75.00")


def test_export_of_too_many_reservations_or_another_format_is_refused(office, monkeypatch):
    monkeypatch.setattr(list_export, "MAX_ROWS", 2)
    many(make_room(), UserFactory(), 3, start=NOW)
    refused = export(office, "csv", when="all")
    assert refused.url == f"{LIST}?when=all"
    assert "At most 2 rows can be exported." in messages_of(refused)[0][1]
    assert export(office, "pdf").status_code == 404
    assert export(office, "csv", nonsense="1").url == f"{LIST}?nonsense=1"


def listed(office, **query):
    return [row.pk for row in list_rows(office, "reservations.reservation", **query)]


def test_reservation_list_filters_by_day(office):
    make_room(time_zone_id="UTC")
    midnight = NOW.replace(hour=0)
    rows = {
        ReservationFactory(start=midnight + offset).pk: name
        for name, offset in (
            *(("yesterday", -HOUR), ("today", 0 * HOUR), ("tomorrow", DAY)),
            *(("in a week", 7 * DAY - HOUR), ("later", 7 * DAY)),
        )
    }

    def cut(**query):
        return [rows[pk] for pk in listed(office, **query)]

    assert cut(when="today") == ["today"]
    assert cut(when="tomorrow") == ["tomorrow"]
    assert cut(when="week") == ["today", "tomorrow", "in a week"]
    assert cut(when="past") == ["yesterday"]
    everything = ["later", "in a week", "tomorrow", "today", "yesterday"]
    assert cut(when="all", start_from="", start_to="") == everything
    assert cut(start_from="2027-03-02", start_to="2027-03-07") == ["tomorrow", "in a week"]
    assert cut(start_from="2027-03-02", when="today") == ["tomorrow", "in a week", "later"]
    assert cut(start_to="2027-03-01") == ["yesterday", "today"]


def test_reservation_list_shows_next_start_first_unless_a_filter_may_find_the_past(office):
    code, partner = PromoCodeFactory(), PartnerFactory()
    fields = {"promo_code": code, "partner": partner}
    old = ReservationFactory(start=NOW - 3 * DAY, status=Status.COMPLETED, **fields)
    later = ReservationFactory(start=NOW + 9 * DAY, status=Status.PENDING)
    soon = ReservationFactory(start=NOW + HOUR, room=later.room)
    upcoming = [soon.pk, later.pk]

    assert listed(office) == upcoming
    assert listed(office, room__center__id__exact=later.room.center_id) == upcoming
    assert listed(office, status__exact="Pending") == [later.pk]
    for query in (
        {"status__exact": "Completed"},
        {"q": str(old.pk)},
        {"when": "all", "promo_code__id__exact": code.pk},
        {"when": "all", "partner__id__exact": partner.pk},
    ):
        assert listed(office, **query) == [old.pk], query


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
        for ticked in ("²", "9" * 40, ""):
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
    for text in ("", "sNaN", "1e999999"):
        act(office, "cancel", first, confirmed="yes", **{f"expected_amount_{first.pk}": text})
    assert get_current_status(first) == Status.CONFIRMED

    act(office, "cancel", first, second, confirmed="yes", **shown)

    assert get_current_status(first) == get_current_status(second) == Status.CANCELLED


def test_bulk_action_is_limited_to_100_rows(office, monkeypatch):
    assert ModelAdmin.max_action_rows == 100
    monkeypatch.setattr(ModelAdmin, "max_action_rows", 3)
    rows = many(make_room(), UserFactory(), 4, start=START, status=Status.CONFIRMED)
    with CaptureQueriesContext(connection) as queries:
        refused = act(office, "cancel", rows[0], select_across="1")
    assert "at most 3 rows at a time. Search or filter" in messages_of(refused)[0][1]
    assert len(queries) < 15
    done = act(office, "cancel", *rows, confirmed="yes")
    assert "Nothing was changed." in messages_of(done)[0][1]
    assert not Reservation.objects.filter(status=Status.CANCELLED).exists()
    Reservation.objects.filter(pk=rows[-1].pk).delete()
    assert act(office, "cancel", rows[0], select_across="1").context["possible"] == 3


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
