"""The list of reservations and its bulk actions, through HTTP requests."""

import csv
import datetime as dt
import io
import re

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from openpyxl import load_workbook

from reservations.models import Partner, Reservation
from reservations.models.status import Status
from roombook.backoffice import list_export
from roombook.backoffice.model_admin import ModelAdmin
from roombook.backoffice.pagination import CappedPaginator
from tests.backoffice.counting import queries_of
from tests.backoffice.many import many
from tests.backoffice.reading import messages_of, words
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
    make_draft,
    make_pending_booking,
    make_room,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

LIST = reverse("admin:reservations_reservation_changelist")
DAY = dt.timedelta(days=1)


# --- Several at once ----------------------------------------------------------------------------


def act(office, name, *reservations, **more):
    data = {"action": name, "_selected_action": [row.pk for row in reservations], **more}
    return office.post(LIST, data)


def test_bulk_action_shows_preview_of_each_reservation(office):
    pending, confirmed = make_pending_booking(), make_booking()

    page = act(office, "approve", pending, confirmed)

    assert "$75.00 from Visa" in words(page)
    assert "Not possible, the status is Confirmed." in words(page)
    assert page.context["possible"] == 1
    assert get_current_status(pending) == Status.PENDING


def test_bulk_action_confirmed_skips_impossible_reservations(office):
    pending, confirmed = make_pending_booking(), make_booking()

    done = act(office, "approve", pending, confirmed, confirmed="yes")

    assert done.url == LIST
    assert [level for level, _ in messages_of(done)] == ["success", "error"]
    assert get_current_status(pending) == Status.CONFIRMED


@pytest.mark.parametrize(
    ("name", "status"), [("decline", Status.DECLINED), ("cancel", Status.CANCELLED)]
)
def test_bulk_action_executes_each_action(office, name, status):
    reservation = make_pending_booking()
    act(office, name, reservation, confirmed="yes")
    assert get_current_status(reservation) == status


def test_bulk_no_show_marks_reservations(office, clock):
    reservation = make_booking()
    clock.move_to(START + HOUR)
    office.force_login(AdministratorFactory())
    act(office, "mark_no_show", reservation, confirmed="yes")
    assert get_current_status(reservation) == Status.NO_SHOW


@pytest.mark.parametrize("ticked", ["abc", "²", "-1", "1.5", "9" * 40, ""])
@pytest.mark.parametrize("name", ["reservations_reservation", "payments_refund", "accounts_user"])
def test_bulk_action_invalid_ids_are_refused(office, name, ticked):
    address = reverse(f"admin:{name}_changelist")
    actions = admin.site._registry[
        next(m for m in admin.site._registry if m._meta.label_lower == name.replace("_", "."))
    ].actions

    response = office.post(address, {"action": actions[0], "_selected_action": [ticked]})

    assert response.status_code == 302
    assert "Nothing was changed" in messages_of(response)[0][1]


def expected_amounts_on(page):
    return dict(re.findall(r'name="(expected_amount_\d+)" value="([^"]*)"', page.content.decode()))


def test_bulk_cancel_refunds_previewed_amounts(office):
    first, second = make_booking(), make_booking()
    shown = expected_amounts_on(act(office, "cancel", first, second))
    assert shown == {f"expected_amount_{each.pk}": "75.00" for each in (first, second)}

    act(office, "cancel", first, second, confirmed="yes", **shown)

    assert get_current_status(first) == get_current_status(second) == Status.CANCELLED


def test_bulk_cancel_changed_refund_is_refused(office, clock):
    late, early = make_booking(), make_booking(start=START + 7 * DAY)
    shown = expected_amounts_on(act(office, "cancel", late, early))
    clock.move_to(START - HOUR)
    office.force_login(AdministratorFactory())

    done = act(office, "cancel", late, early, confirmed="yes", **shown)

    assert [level for level, _ in messages_of(done)] == ["error", "success"]
    assert (
        "The refund has changed: it comes to $0.00 now. Nothing was done."
        in messages_of(done)[0][1]
    )
    assert get_current_status(late) == Status.CONFIRMED
    assert get_current_status(early) == Status.CANCELLED


@pytest.mark.parametrize("sum_", ["", "x", "NaN", "sNaN", "Infinity", "1e999999"])
def test_bulk_cancel_invalid_expected_amount_is_refused(office, sum_):
    reservation = make_booking()
    act(
        office,
        "cancel",
        reservation,
        confirmed="yes",
        **{f"expected_amount_{reservation.pk}": sum_},
    )
    assert get_current_status(reservation) == Status.CONFIRMED


def test_bulk_action_select_across_is_limited_to_100(office):
    rows = many(make_room(), UserFactory(), 101, start=START, status=Status.CONFIRMED)
    with CaptureQueriesContext(connection) as queries:
        refused = act(office, "cancel", rows[0], select_across="1")
    assert "at most 100 rows at a time. Search or filter" in messages_of(refused)[0][1]
    assert len(queries) < 15
    Reservation.objects.filter(pk=rows[-1].pk).delete()
    assert act(office, "cancel", rows[0], select_across="1").context["possible"] == 100


def test_bulk_action_above_100_rows_is_refused(office):
    rows = many(make_room(), UserFactory(), 101, start=START, status=Status.CONFIRMED)
    done = act(office, "cancel", *rows, confirmed="yes")
    assert "Nothing was changed." in messages_of(done)[0][1]
    assert not Reservation.objects.filter(status=Status.CANCELLED).exists()


def test_bulk_action_confirmed_affects_previewed_rows_only(office):
    shown, other = make_booking(), make_booking()
    act(office, "cancel", shown, select_across="1", confirmed="yes")
    assert get_current_status(shown) == Status.CANCELLED
    assert get_current_status(other) == Status.CONFIRMED


def test_bulk_delete_confirmed_affects_listed_rows_only(office):
    shown, other = PartnerFactory(), PartnerFactory()
    address = reverse("admin:reservations_partner_changelist")
    data = {"action": "delete_selected", "_selected_action": [shown.pk], "select_across": "1"}
    office.post(address, {**data, "post": "yes"})
    assert list(Partner.objects.all()) == [other]


@pytest.mark.parametrize(
    ("model", "action"),
    [
        ("accounts.user", "sign_out_all_devices"),
        ("accounts.outboxmessage", "send_again"),
        ("centers.meetingroom", "take_out_of_service"),
        ("payments.refund", "retry"),
        ("payments.refund", "mark_refunded_manually"),
        ("reservations.partner", "delete_selected"),
    ],
)
def test_every_list_limits_action_rows(office, monkeypatch, model, action):
    monkeypatch.setattr(ModelAdmin, "max_action_rows", -1)
    address = reverse(f"admin:{model.replace('.', '_')}_changelist")
    for is_all in ("0", "1"):
        data = {"action": action, "_selected_action": ["1"], "select_across": is_all}
        assert "rows at a time" in messages_of(office.post(address, data))[0][1]


# --- Export ---


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
    assert dict(zip(header, rows[1], strict=True)) == {
        "Number": str(later.pk),
        "Status": "Confirmed",
        "Hold": "",
        "Start (local)": "2027-03-03 09:00",
        "End (local)": "2027-03-03 12:00",
        "Time zone": "America/Denver",
        "Center": "Glenarm",
        "Room": "Boardroom",
        "Customer": "Ada Lovelace",
        "Company": "'=1+1",
        "Attendees": "3",
        "Total": "75.00",
        "Currency": "USD",
    }


def test_export_of_reservations_as_workbook(office):
    reservation = make_booking()
    content = b"".join(export(office, "xlsx").streaming_content)
    sheet = load_workbook(io.BytesIO(content)).active
    assert (sheet["A2"].value, str(sheet["D2"].value)) == (reservation.pk, "2027-03-03 09:00:00")


def test_export_of_reservations_is_limited_to_own_centers(client, staff):
    mine = make_booking()
    make_booking(room=make_room())
    client.force_login(staff("Viewer", mine.room.center))
    assert [row[0] for row in rows_of(export(client, "csv"))[1:]] == [str(mine.pk)]


def test_export_of_reservations_is_refused_without_permission(client, staff, office):
    office.logout()
    assert export(client, "csv").status_code == 302
    client.force_login(UserFactory(is_staff=True))
    assert export(client, "csv").status_code == 403


def test_export_of_too_many_reservations_is_refused(office, monkeypatch):
    monkeypatch.setattr(list_export, "MAX_ROWS", 2)
    many(make_room(), UserFactory(), 3, start=NOW)
    refused = export(office, "csv", when="all")
    assert refused.url == f"{LIST}?when=all"
    assert "At most 2 rows can be exported." in messages_of(refused)[0][1]
    assert export(office, "pdf").status_code == 404
    assert export(office, "csv", nonsense="1").url == LIST


# --- The list -----------------------------------------------------------------------------------


def listed(office, **query):
    return [row.pk for row in office.get(LIST, query).context["cl"].result_list]


def test_reservation_list_filters_by_day(office):
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
    assert cut(when="all") == everything
    assert cut(when="all", start_from="", start_to="") == everything
    assert cut(start_from="2027-03-02", start_to="2027-03-07") == ["tomorrow", "in a week"]
    assert cut(start_from="2027-03-02", when="today") == ["tomorrow", "in a week", "later"]
    assert cut(start_to="2027-03-01") == ["yesterday", "today"]


def test_reservation_list_shows_next_start_first(office):
    old = ReservationFactory(start=NOW - 3 * DAY, status=Status.COMPLETED)
    later = ReservationFactory(start=NOW + 9 * DAY, status=Status.PENDING)
    soon = ReservationFactory(start=NOW + HOUR, room=later.room)
    upcoming = [soon.pk, later.pk]

    assert listed(office) == upcoming
    assert listed(office, room__center__id__exact=later.room.center_id) == upcoming
    assert listed(office, room__id__exact=later.room_id) == upcoming
    assert listed(office, status__exact="Pending") == [later.pk]
    # What may be in the past is found without another filter.
    assert listed(office, status__exact="Completed") == [old.pk]
    assert listed(office, q=str(old.pk)) == [old.pk]
    assert listed(office, when="all") == [later.pk, soon.pk, old.pk]


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31", "3/4/2027", "x", "2027-02-30"])
def test_reservation_list_invalid_day_is_ignored(office, day):
    reservation = ReservationFactory(start=NOW - DAY)
    assert listed(office, start_from=day, start_to=day) == [reservation.pk]


def test_reservation_list_days_are_those_of_the_only_center(client, staff):
    room = make_room()
    evening = ReservationFactory(room=room, start=START.replace(hour=4))  # 21:00 the day before
    client.force_login(staff("Desk", room.center))

    assert listed(client, start_from="2027-03-02", start_to="2027-03-02") == [evening.pk]
    assert listed(client, start_from="2027-03-03") == []


def test_reservation_list_marks_expired_drafts(office, clock):
    draft = make_draft()
    page = words(office.get(LIST))
    assert "held until Mon 2027-03-01 09:15" in page
    assert "Expired draft" not in page
    address = reverse("admin:reservations_reservation_change", args=[draft.pk])
    assert "Expired draft" not in words(office.get(address))

    clock.move_to(NOW + HOUR)

    assert "Expired draft the room is not held" in words(office.get(LIST))
    assert "Expired draft" in words(office.get(address))


def test_reservation_list_day_filter_uses_center_time_zone(office):
    room = make_room()
    midnight = NOW.replace(hour=7)  # in Denver
    today = ReservationFactory(room=room, start=midnight)
    ReservationFactory(room=room, start=midnight - HOUR, end=midnight)
    ReservationFactory(start=midnight)

    assert listed(office, when="today", room__center__id__exact=room.center_id) == [today.pk]


@pytest.mark.parametrize("center", ["abc", "²", "9" * 30])
def test_reservation_list_invalid_filter_is_ignored(office, center):
    response = office.get(LIST, {"when": "today", "room__center__id__exact": center})
    assert response.status_code in {200, 302}


@pytest.mark.parametrize(
    "words",
    [
        *("grace.hopper@navy.example", "GRACE.hopper@Navy.example", "grace.hopper@", "grace.ho"),
        *("Hopper", "hop", "Grace", "Grace Hop", "hopper grace", "Navy Y", " navy  yard "),
    ],
)
def test_reservation_search_finds_customers_by_prefix(office, words):
    grace = UserFactory(
        email="grace.hopper@navy.example",
        first_name="Grace",
        last_name="Hopper",
        company_name="Navy Yard",
    )
    hers = ReservationFactory(user=grace)
    ReservationFactory()

    assert listed(office, q=words) == [hers.pk]


def test_reservation_search_finds_by_number(office):
    one, two = ReservationFactory(), ReservationFactory()

    assert listed(office, q=str(one.pk)) == [one.pk]
    assert listed(office, q=f"#{two.pk}") == [two.pk]
    assert listed(office, q="9" * 30) == []
    assert listed(office, q="%") == []


def test_reservation_search_viewer_cannot_search_by_email(client, staff):
    row = ReservationFactory(user=UserFactory(email="grace@navy.example", last_name="Hopper"))
    client.force_login(staff("Viewer", row.room.center))

    assert listed(client, q="grace@navy.example") == []
    assert listed(client, q="grace@") == []
    assert listed(client, q="hopp") == [row.pk]


def test_reservation_list_filters_by_status_code_and_partner(office):
    code, partner = PromoCodeFactory(), PartnerFactory()
    row = ReservationFactory(status=Status.CANCELLED, promo_code=code, partner=partner)
    ReservationFactory()

    assert listed(office, status__exact="Cancelled") == [row.pk]
    assert listed(office, promo_code__id__exact=code.pk) == [row.pk]
    assert listed(office, partner__id__exact=partner.pk) == [row.pk]


@pytest.mark.parametrize("query", ["", "?when=week", "?q=ada", "?status__exact=Completed"])
def test_reservation_list_query_count_is_constant(office, query):
    room, ada = make_room(), UserFactory()
    many(room, ada, 20, start=NOW)
    few = queries_of(office, LIST + query)
    many(room, ada, 1_980, start=NOW + DAY)

    assert queries_of(office, LIST + query) == few


def test_list_neither_counts_all_rows_nor_reads_filter_choices(
    office, django_assert_max_num_queries
):
    many(make_room(), UserFactory(), 60, start=NOW)

    with django_assert_max_num_queries(14) as captured:
        office.get(LIST)

    statements = [each["sql"] for each in captured.captured_queries]
    assert not [sql for sql in statements if "DISTINCT" in sql or "COUNT(" in sql]
    assert len([sql for sql in statements if "LIMIT 5000" in sql]) == 1


@pytest.mark.parametrize("page", [1, 2, 3])
def test_reservation_list_page_does_not_depend_on_count_limit(office, monkeypatch, page):
    many(make_room(), UserFactory(), 120, start=NOW)
    by_ids = listed(office, p=page)
    monkeypatch.setattr(CappedPaginator, "MAX_ROWS", 120)

    assert len(by_ids) == (20 if page == 3 else 50)
    assert listed(office, p=page) == by_ids


def test_list_sorts_by_indexed_columns_only(office):
    assert office.get(LIST).context["cl"].sortable_by == ("when",)


@pytest.mark.postgres
def test_reservation_list_queries_use_an_index(office):
    """The table is small, so sequential scans are made expensive."""
    from django.db import connection

    many(make_room(), UserFactory(), 50, start=NOW)
    ways = {
        "reservation_by_start": Reservation.objects.order_by("-start", "-pk")[:50],
        "Index Cond: (user_id": Reservation.objects.filter(user__in=[1, 2, 3]),
        "reservation_by_status": Reservation.objects.filter(status="Pending").order_by("start"),
    }
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
    for index, rows in ways.items():
        assert index in rows.explain(), rows.explain()
