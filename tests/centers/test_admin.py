"""Admin pages of centers, used as a browser uses them."""

from datetime import UTC, datetime, time
from decimal import Decimal

import pytest
from django.urls import reverse

from centers import models
from tests.admin_forms import errors_of, form_of
from tests.factories_centers import (
    CenterFactory,
    CenterImageFactory,
    ClosureFactory,
    FavoriteFactory,
    LandmarkFactory,
    MeetingRoomFactory,
    NeighborhoodFactory,
    PriceListFactory,
    RateFactory,
    ServiceFactory,
    TermsFactory,
    make_center_with_room,
)
from tests.factories_people import UserFactory

# The page of a center lists the closures to come.
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

MODELS = [
    *(models.Center, models.MeetingRoom, models.Rate, models.Service, models.Closure),
    *(models.Neighborhood, models.ResourceType),
]


@pytest.fixture
def center_with_rows():
    center = make_center_with_room(name="Glenarm", neighborhood=NeighborhoodFactory(name="LoDo"))
    ServiceFactory(center=center)
    CenterImageFactory(center=center)
    LandmarkFactory(center=center)
    FavoriteFactory(user=UserFactory(), center=center)
    ClosureFactory(
        center=center,
        room=center.rooms.get(),
        starts_at=datetime(2027, 7, 4, 6, tzinfo=UTC),
        ends_at=datetime(2027, 7, 5, 6, tzinfo=UTC),
    )
    return center


def url(model, page, *args):
    return reverse(f"admin:centers_{model._meta.model_name}_{page}", args=args)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_unchanged_page_is_saved_and_no_select_box_lists_all_centers(
    office, center_with_rows, model
):
    row = model._default_manager.first()
    page = office.get(url(model, "change", row.pk))
    assert errors_of(office.post(url(model, "change", row.pk), form_of(page))) == {}
    # Choices that grow with the business use autocomplete.
    option = f'<option value="{center_with_rows.pk}">{center_with_rows.name}</option>'
    assert option not in office.get(url(model, "add")).text


def test_center_list_searches_like_customers_do(office, center_with_rows):
    CenterFactory(name="Elsewhere", city="Boston")
    page = office.get(url(models.Center, "changelist"), {"q": "LODO, colorado"})
    assert [*page.context["cl"].result_list] == [center_with_rows]
    field = {"app_label": "centers", "model_name": "landmark", "field_name": "center"}
    found = office.get(reverse("admin:autocomplete"), {"term": "lodo", **field})
    assert [each["text"] for each in found.json()["results"]] == ["Glenarm"]


# --- A center -------------------------------------------------------------------------------------


def test_center_is_added_with_hours_and_rates(office):
    data = form_of(office.get(url(models.Center, "add"))) | {
        "name": "Glenarm",
        "city": "Denver",
        "state": "Colorado",
        "country": "USA",
        "latitude": "39.7433",
        "longitude": "-104.9903",
        "opening_hours-TOTAL_FORMS": 1,
        "opening_hours-0-weekday": 0,
        "opening_hours-0-opens": "08:00",
        "opening_hours-0-closes": "00:00",
        "rates-TOTAL_FORMS": 1,
        "rates-0-name": "Standard",
        "rates-0-hourly": "25",
    }
    response = office.post(url(models.Center, "add"), data)
    assert errors_of(response) == {}
    center = models.Center.objects.get()
    assert (center.state, center.country, center.time_zone_id) == ("CO", "US", "America/Denver")
    assert center.opening_hours.get().closes == time(0)
    assert center.rates.get().hourly == 25


def test_closures_on_the_center_page_are_in_local_time_and_of_its_rooms(office, center_with_rows):
    make_center_with_room(name="Other")
    address = url(models.Center, "change", center_with_rows.pk) + "?tab=closure"
    page = office.get(address)
    (closures,) = (
        each for each in page.context["inline_admin_formsets"] if each.opts.model is models.Closure
    )
    assert list(closures.formset.forms[0].fields["room"].queryset) == [center_with_rows.rooms.get()]
    data = form_of(page)
    assert data["closures-0-starts_at_0"] == "2027-07-04"
    data |= {"closures-0-starts_at_1": "09:30"}
    assert errors_of(office.post(address, data)) == {}
    assert center_with_rows.closures.get().starts_at == datetime(2027, 7, 4, 15, 30, tzinfo=UTC)


def test_closure_page_is_in_local_time_of_the_center(office):
    tokyo = make_center_with_room(time_zone_id="Asia/Tokyo")
    data = {
        "center": tokyo.pk,
        "starts_at_0": "2027-01-01",
        "starts_at_1": "00:00",
        "ends_at_0": "2027-01-02",
        "ends_at_1": "00:00",
    }
    assert errors_of(office.post(url(models.Closure, "add"), data)) == {}
    closure = models.Closure.objects.get()
    assert closure.starts_at == datetime(2026, 12, 31, 15, tzinfo=UTC)
    assert b'value="00:00"' in office.get(url(models.Closure, "change", closure.pk)).content
    assert b"Fri 2027-01-01 00:00 JST" in office.get(url(models.Closure, "changelist")).content
    data["ends_at_0"] = "2026-12-31"
    assert "__all__" in errors_of(office.post(url(models.Closure, "add"), data))


# --- Terms of cancellation ------------------------------------------------------------------------


@pytest.mark.parametrize("factory", [TermsFactory, RateFactory])
def test_terms_and_rates_stay_at_their_center(office, factory):
    row, other, namesake = factory(), CenterFactory(), factory(name="Taken")
    type(row).objects.filter(pk=namesake.pk).update(center=row.center)
    page = url(type(row), "change", row.pk)
    data = form_of(office.get(page)) | {"center": other.pk}

    assert errors_of(office.post(page, data | {"name": "Taken"}))
    assert errors_of(office.post(page, data | {"name": "Renamed"})) == {}

    former = row.center_id
    row.refresh_from_db()
    assert (row.center_id, row.name) == (former, "Renamed")


def test_terms_are_entered_as_hours_and_percent_in_any_order(office):
    center = CenterFactory()
    data = {"center": center.pk, "name": "Flexible", "grace_minutes": 0, "no_show_percent": 100}
    steps = ("48", "50", "168", "100")
    data |= {f"steps_{number}": text for number, text in enumerate(steps)}
    assert errors_of(office.post(url(models.Terms, "add"), data)) == {}
    terms = models.Terms.objects.get()
    assert terms.steps == "168: 100; 48: 50"
    page = office.get(url(models.Terms, "change", terms.pk)).text
    assert 'name="steps_2" value="48"' in page
    assert office.get(url(models.Center, "change", center.pk)).text.count("Flexible (168: 100;") > 0
    for wrong in ({"steps_1": ""}, {"steps_1": "101"}, {"steps_3": "50"}):
        assert "steps" in errors_of(office.post(url(models.Terms, "add"), data | wrong))


def test_room_has_only_terms_of_its_center(office):
    room, other = MeetingRoomFactory(), TermsFactory()
    address = reverse("admin:centers_rate_choices")
    own = TermsFactory(center=room.center)
    answer = office.get(f"{address}?for=terms&center={room.center_id}").json()
    assert answer == {"choices": [[own.pk, "Flexible (168: 100; 48: 50)"]]}
    data = {"center": room.center_id, "terms": other.pk}
    assert "terms" in errors_of(office.post(url(models.MeetingRoom, "change", room.pk), data))


# --- Rates ----------------------------------------------------------------------------------------

NO_LISTS = {"price_lists-TOTAL_FORMS": 0, "price_lists-INITIAL_FORMS": 0}
EVENING = {
    "price_lists-0-name": "Evening",
    "price_lists-0-weekdays": ["mon", "fri"],
    "price_lists-0-starts": "18:00",
    "price_lists-0-ends": "00:00",
    "price_lists-0-hourly": "30",
}
WEEKEND = {
    "price_lists-1-name": "Weekend",
    "price_lists-1-starts": "20:00",
    "price_lists-1-ends": "22:00",
    "price_lists-1-hourly": "40",
}


def test_rate_is_saved_with_its_special_prices_unless_two_overlap(office):
    data = {"center": CenterFactory().pk, "name": "Standard", "hourly": "25"} | NO_LISTS
    both = data | EVENING | WEEKEND | {"price_lists-TOTAL_FORMS": 2}
    page = office.post(url(models.Rate, "add"), both).text
    assert "Evening and Weekend would both hold on Mon 2027-03-01 20:00." in page
    assert not models.Rate.objects.exists()

    data |= EVENING | {"price_lists-TOTAL_FORMS": 1}
    assert errors_of(office.post(url(models.Rate, "add"), data)) == {}
    [evening] = models.Rate.objects.get().special_prices
    assert (evening.weekdays, evening.starts.hour, evening.hourly) == ("mon,fri", 18, 30)


def test_list_on_its_own_page_is_compared_with_those_of_its_rate(office):
    evening, other = PriceListFactory(), RateFactory()
    data = {"name": "Late", "starts": "20:00", "ends": "00:00", "hourly": "40"}
    page = office.post(url(models.PriceList, "add"), data | {"rate": evening.rate_id}).text
    assert "Late and Evening would both hold on Mon 2027-03-01 20:00." in page
    page = url(models.PriceList, "change", evening.pk)
    assert errors_of(office.post(page, data | {"rate": other.pk})) == {}
    with_lists = models.Rate.objects.filter(has_special_prices=True)
    assert [*with_lists] == [other]


def test_week_of_prices_follows_what_is_entered(office):
    data = {"name": "Standard", "hourly": "25", **EVENING, "price_lists-TOTAL_FORMS": 1}
    # Times are read as the page reads them when it is saved.
    data |= {"price_lists-0-starts": "18", "price_lists-0-ends": "24:00"}
    page = office.post(reverse("admin:centers_rate_examples"), data).content.decode()
    assert "Prices in the week of 2027-03-01" in page
    assert page.count("$30.00/hour<br><small>Evening</small>") == 2
    assert "4 hours: 2 hours + evening 2 hours" in page
    for field, text, problem in (
        ("valid_from", "12/1", "First day: Enter a valid date."),
        ("hourly", "", "Enter at least one price."),
    ):
        entered = data | {f"price_lists-0-{field}": text}
        page = office.post(reverse("admin:centers_rate_examples"), entered).content.decode()
        assert f"<strong>Evening:</strong> {problem}" in page


def test_price_of_zero_must_be_confirmed(office):
    center = CenterFactory()
    data = {"center": center.pk, "name": "Gift", "hourly": "0", "half_day": "0.00", **NO_LISTS}
    errors = errors_of(office.post(url(models.Rate, "add"), data))
    assert set(errors) == {"hourly", "half_day", "is_zero_price_allowed"}
    data["is_zero_price_allowed"] = "on"
    assert errors_of(office.post(url(models.Rate, "add"), data)) == {}
    rate = models.Rate.objects.get()
    assert (rate.hourly, rate.full_day) == (Decimal(0), None)
    # Not again where nothing of it changes.
    data = {**data, "description": "On the house", "is_zero_price_allowed": ""}
    assert errors_of(office.post(url(models.Rate, "change", rate.pk), data)) == {}
