"""The pages of centers, rooms and rates: links, opening hours, concurrent edits, and lists."""

import re
from datetime import time
from decimal import Decimal

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.urls import reverse

from centers import models
from centers.admin.center import OpeningHoursInline
from tests.admin_forms import errors_of, form_of
from tests.factories_centers import (
    CenterFactory,
    NeighborhoodFactory,
    OpeningHoursFactory,
    RateFactory,
    make_center_with_room,
)
from tests.factories_people import AdministratorFactory, UserFactory

pytestmark = pytest.mark.django_db


def url(model, page, *args):
    return reverse(f"admin:centers_{model}_{page}", args=args)


def tab_of(center, name):
    return f"{url('center', 'change', center.pk)}?tab={name}"


def edit(office, center, changes, *, tab=""):
    """Open the page of a center, make the changes and save it."""
    address = tab_of(center, tab)
    return office.post(address, {**form_of(office.get(address)), **changes})


@pytest.mark.parametrize("first_is_chosen", [True, False])
def test_first_terms_of_a_center_are_used_at_once_and_further_ones_are_not(office, first_is_chosen):
    center = CenterFactory()
    for number, name in enumerate(("Flexible", "Strict")):
        rows = {"TOTAL_FORMS": number + 1, f"{number}-name": name, f"{number}-steps_0": "48"}
        rows |= {f"{number}-steps_1": "100", f"{number}-center": center.pk}
        rows |= {f"{number}-grace_minutes": "0", f"{number}-no_show_percent": "100"}
        edit(
            office, center, {f"all_terms-{key}": value for key, value in rows.items()}, tab="terms"
        )
        if not first_is_chosen:  # They may be meant for one room.
            models.Center.objects.update(terms=None)
    center.refresh_from_db()
    assert center.all_terms.count() == 2
    assert center.terms == (center.all_terms.get(name="Flexible") if first_is_chosen else None)


def test_tab_that_the_user_may_not_see_is_not_shown(client):
    center = make_center_with_room()
    builder = UserFactory(is_staff=True)
    names = ("view_center", "change_center", "view_rate")
    builder.user_permissions.set(Permission.objects.filter(codename__in=names))
    client.force_login(builder)
    page = client.get(tab_of(center, "meetingroom"))
    assert [each["title"] for each in page.context["tab_list"][0]["items"]] == ["General", "Rates"]
    assert page.context["inline_admin_formsets"] == []
    assert "timeline_url" not in page.context


def test_tab_of_a_center_with_a_value_that_became_invalid_says_what_is_wrong(office):
    center = CenterFactory()
    models.Center.objects.update(country="Yugoslavia")
    answer = edit(office, center, {}, tab="rate")
    assert answer.status_code == 200
    assert "Enter the name or code of a country." in answer.text


def test_time_zone_view_returns_the_zone_of_coordinates_or_a_message(office):
    for latitude, longitude, zone in (
        *(("39.74", "-104.99", "America/Denver"), ("27.7", "85.3", "Asia/Kathmandu")),
        *(("", "", ""), ("91", "1", ""), ("nan", "1", ""), ("\0", "1", "")),
    ):
        place = {"latitude": latitude, "longitude": longitude}
        answer = office.get(reverse("admin:centers_time_zone"), place).json()
        assert (answer["timeZone"], bool(answer["message"])) == (zone, not zone), place


def test_moved_center_gets_the_time_zone_of_its_coordinates_unless_one_is_entered(office):
    center = CenterFactory()
    tokyo = {"latitude": "35.68", "longitude": "139.76"}
    sydney = {"latitude": "-33.87", "longitude": "151.21"}
    for typed, zone in (
        (tokyo, "Asia/Tokyo"),
        ({**sydney, "time_zone_id": "Asia/Seoul"}, "Asia/Seoul"),
    ):
        assert errors_of(edit(office, center, typed)) == {}
        center.refresh_from_db()
        assert center.time_zone_id == zone
    assert "time_zone_id" in errors_of(edit(office, center, {"time_zone_id": "Mars/Crater"}))


def hours(*intervals, stored=()):
    """The form fields of a week: stored rows first, then new ones."""
    data = {
        "opening_hours-TOTAL_FORMS": len(stored) + len(intervals),
        "opening_hours-INITIAL_FORMS": len(stored),
    }
    for index, (row, (weekday, opens, closes)) in enumerate(
        [*stored, *((None, interval) for interval in intervals)]
    ):
        data[f"opening_hours-{index}-id"] = row.pk if row else ""
        data[f"opening_hours-{index}-weekday"] = weekday
        data[f"opening_hours-{index}-opens"] = opens
        data[f"opening_hours-{index}-closes"] = closes
    return data


def week(center):
    rows = center.opening_hours.order_by("weekday", "opens")
    return [(row.weekday, f"{row.opens:%H:%M}", f"{row.closes:%H:%M}") for row in rows]


ALL_DAY = [(0, "08:00", "12:00"), (0, "12:00", "00:00"), (6, "00:00", "00:00")]
OVER_MIDNIGHT = [(4, "22:00", "02:00"), (5, "02:00", "00:00"), (6, "00:00", "04:00")]


@pytest.mark.parametrize(
    ("stored", "new", "expected"),
    [
        (None, ALL_DAY, ALL_DAY),
        (None, OVER_MIDNIGHT, OVER_MIDNIGHT),
        # Without times, it is deleted.
        ((0, "", ""), [(3, "", "")], []),
        # Copying a day does this if the other day already has the second interval.
        (
            *((1, "08:00", "12:00"), [(1, "13:00", "17:00")]),
            [(1, "08:00", "12:00"), (1, "13:00", "17:00")],
        ),
    ],
)
def test_opening_hours_are_saved_as_entered(office, stored, new, expected):
    center, rows = CenterFactory(), []
    if stored:
        opens, closes = time(13), time(17)
        row = OpeningHoursFactory(center=center, weekday=stored[0], opens=opens, closes=closes)
        rows = [(row, stored)]
    typed = hours(*new, stored=rows)
    assert errors_of(edit(office, center, typed, tab="openinghours")) == {}
    assert week(center) == expected
    if new == OVER_MIDNIGHT:
        page = office.get(url("center", "change", center.pk)).text
        assert "Fri 22:00 - 02:00; Sat 02:00 - 24:00; Sun 00:00 - 04:00" in page


def test_invalid_opening_hours_show_a_message(office, rf):
    center = CenterFactory()
    request = rf.get("/")
    request.user = AdministratorFactory()
    form_set = OpeningHoursInline(models.Center, admin.site).get_formset(request, center)
    for intervals, message in (
        ([(0, "08:00", "08:00")], "Opening and closing differ"),
        ([(6, "22:00", "02:00"), (0, "00:00", "09:00")], "overlap on Monday, Sunday"),
        ([(0, "08:00", "")], "Enter a closing time."),
        ([(0, "early", "08:00")], "Enter a valid time."),
        ([("x", "08:00", "09:00")], "not one of the available choices"),
        ([("", "08:00", "09:00")], "This field is required."),
    ):
        week_forms = form_set(data=hours(*intervals), instance=center, prefix="opening_hours")
        assert message in f"{week_forms.errors} {week_forms.non_form_errors()}", intervals
    # Messages of the form set and of one of its forms are on the page.
    for intervals in ([(0, "08:00", "12:00"), (0, "11:00", "13:00")], [(0, "", "08:00")]):
        answer = edit(office, center, hours(*intervals), tab="openinghours")
        assert re.search("overlap on Monday|Enter an opening time.", answer.text)
        assert week(center) == []


def test_concurrent_edits_of_a_center_its_hours_and_its_rates_are_kept(office):
    center = CenterFactory(promo_text="Old", rank=5)
    rate = RateFactory(center=center, hourly=Decimal(25))
    monday, _tuesday = (OpeningHoursFactory(center=center, weekday=day) for day in range(2))
    mine = {tab: form_of(office.get(tab_of(center, tab))) for tab in ("", "rate", "openinghours")}
    models.Center.objects.update(promo_text="Theirs")
    models.Rate.objects.update(hourly=Decimal(30))
    models.OpeningHours.objects.filter(pk=monday.pk).update(closes=time(20))
    mine[""]["rank"] = "7"
    mine["rate"]["rates-0-full_day"] = "150"
    mine["openinghours"]["opening_hours-1-closes"] = "21:00"
    for tab, typed in mine.items():
        assert errors_of(office.post(tab_of(center, tab), typed)) == {}
    center.refresh_from_db()
    rate.refresh_from_db()
    assert (center.promo_text, center.rank) == ("Theirs", 7)
    assert (rate.hourly, rate.full_day) == (30, 150)
    assert week(center) == [(0, "08:30", "20:00"), (1, "08:30", "21:00")]


def test_concurrent_edits_of_a_page_without_a_form_of_its_own_are_kept(office):
    row = NeighborhoodFactory(city="Denver")
    address = url("neighborhood", "change", row.pk)
    mine = form_of(office.get(address))
    models.Neighborhood.objects.filter(pk=row.pk).update(city="Aurora")
    assert errors_of(office.post(address, {**mine, "name": "Old Town"})) == {}
    row.refresh_from_db()
    assert (row.city, row.name) == ("Aurora", "Old Town")


def test_rate_list_saves_only_valid_prices_that_were_edited(office):
    rate, other = RateFactory(hourly=25, half_day=90), RateFactory(hourly=40)
    address = url("rate", "changelist")
    mine = {**form_of(office.get(address)), "_save": "Save"}
    for typed, message in (
        ("0", "open the rate to confirm it"),
        ("-3", "A price must not be negative."),
        ("cheap", "Enter a number."),
    ):
        refused = office.post(address, {**mine, "form-0-hourly": typed, "form-1-hourly": "41"})
        assert message in refused.text
        # Beside the field.
        assert "hourly" in refused.context["cl"].formset.forms[0].errors
    # Somebody else changed a price since the list was opened.
    models.Rate.objects.filter(pk=rate.pk).update(hourly=30)
    assert office.post(address, {**mine, "form-0-half_day": "95.50"}).status_code == 302
    rate.refresh_from_db()
    other.refresh_from_db()
    assert (rate.hourly, rate.half_day, other.hourly) == (30, Decimal("95.50"), 40)


# --- Messages for constraints --------------------------------------------------------------------
