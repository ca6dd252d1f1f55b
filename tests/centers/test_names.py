"""A name is the same however it is typed: in imports, in forms and in the database."""

# ruff: noqa: RUF001 (letters that look alike are what these tests are about)
import pytest
from django.db import IntegrityError
from django.urls import reverse

from centers.models import MeetingRoom, Rate, Service
from roombook.texts import clean_line, fold_name
from tests.admin_forms import errors_of, form_of
from tests.factories_centers import CenterFactory, MeetingRoomFactory, RateFactory, ServiceFactory
from tests.factories_people import AdministratorFactory
from tests.imports import build_csv, check, get_errors, load, room_row

NAME = "Café Röntgen 12"
# What is stored as NAME, and what only means it.
TYPED = [
    *("Cafe\u0301 Ro\u0308ntgen 12", "Café\u00a0Röntgen\u202f12", " Café  Röntgen \t12 "),
    *(
        "Café\r\nRöntgen\u202812",
        "Ca\u200bfé\u2060 Röntgen\ufeff 12",
        "Ca\u00adfé Rönt\u00adgen 12",
    ),
    *("\u200eCafé \u202eRöntgen\u202c 12", "Café\x07 Röntgen\x1b 12\ufffe"),
]
MEANT = [
    *("Ｃａｆé　Röntgen １２", "CAFÉ RÖNTGEN 12", "Ca\u200dfé Röntgen\u200c 12"),
    "Café Röntgen\ufe0f 12",
]
# One of each for what costs a request: `fold_name` and the database see all of them.
SOME = [TYPED[0], TYPED[4], MEANT[0]]
MODELS = [(MeetingRoom, MeetingRoomFactory), (Rate, RateFactory), (Service, ServiceFactory)]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        *((NAME, typed, True) for typed in [*TYPED, *MEANT]),
        *(("İstanbul", "ISTANBUL", True), ("ısı", "ISI", True), ("Straße", "STRASSE", True)),
        *(("Rock’n’Roll", "rock'n'roll", True), ("1–3", "1-3", True), ("ﾊﾞﾗ", "バラ", True)),
        *(("Café", "Cafe", False), ("バラ", "ハラ", False), ("A 1", "A1", False)),
    ],
)
def test_names_are_the_same_but_for_spelling_case_width_and_punctuation(one, other, is_same):
    assert (fold_name(one) == fold_name(other)) is is_same


@pytest.mark.django_db
@pytest.mark.parametrize("typed", SOME)
def test_import_finds_every_row_by_its_name(typed):
    center = CenterFactory(name=NAME)
    rate = RateFactory(center=center, name=NAME)
    room = MeetingRoomFactory(center=center, name=NAME, rate=None)
    service = ServiceFactory(center=center, name=NAME, resource_type__name=NAME)
    named = {"center": typed, "name": typed}
    for what, row in {
        "rooms": room_row(center, rate=typed) | named,
        "services": named | {"type": typed, "minimum_booking": "3"},
        "rates": named | {"setup_fee": "9"},
        "centers": {"name": typed, "city": center.city, "state": center.state, "rank": "5"},
    }.items():
        assert load(what, build_csv(row)) == {"changed": 1}

    for each in (center, rate, room, service):
        each.refresh_from_db()
        assert each.name == clean_line(typed)
        assert (each.name == NAME) is (typed in TYPED)
    assert room.rate == rate


@pytest.mark.django_db
def test_two_spellings_in_one_file_are_one_row_and_another_spelling_is_no_change():
    center = CenterFactory()
    rows = [room_row(center, name=name) for name in (NAME, *TYPED)]
    errors = get_errors("rooms", build_csv(*rows))
    assert {why for _, _, why in errors} == {"Row 2 is the same room."}
    assert len(errors) == len(TYPED)

    load("rooms", build_csv(rows[0]))
    for row in rows:
        assert check("rooms", build_csv(row))[1].totals["skip"] == 1


@pytest.mark.django_db
@pytest.mark.parametrize(("model", "factory"), MODELS, ids=lambda each: each.__name__)
def test_form_refuses_the_name_of_another_row_and_lists_find_it(client, model, factory):
    row = factory(name=NAME)
    client.force_login(AdministratorFactory())
    page = f"admin:centers_{model._meta.model_name}"
    fields = {"center": row.center_id, "capacity": "8", "resource_type": "1"}
    fields |= dict.fromkeys(("turnaround_minutes", "minimum_booking", "position"), "0")
    kind = row._meta.verbose_name.split()[-1]
    for typed in SOME:
        response = client.post(reverse(f"{page}_add"), fields | {"name": typed})
        errors = response.context["adminform"].form.errors
        assert errors["name"] == [f"This center already has a {kind} with this name."]
    assert model.objects.count() == 1
    for typed in SOME[:2]:
        found = client.get(reverse(f"{page}_changelist"), {"q": typed}).context["cl"]
        assert found.result_count == 1


@pytest.mark.django_db
@pytest.mark.parametrize("typed", [TYPED[0], MEANT[0]])
def test_page_of_a_center_refuses_two_new_rows_of_one_name(client, typed):
    client.force_login(AdministratorFactory())
    url = reverse("admin:centers_center_change", args=[CenterFactory().pk]) + "?tab=rate"
    fields = form_of(client.get(url)) | {"rates-TOTAL_FORMS": "2"}
    for number, name in enumerate((NAME, typed)):
        fields |= {f"rates-{number}-name": name, f"rates-{number}-hourly": "5"}

    response = client.post(url, fields)

    assert errors_of(response) == {"name": ["Another row here has this name."]}
    assert not Rate.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("model", "factory"), MODELS, ids=lambda each: each.__name__)
def test_constraint_refuses_other_spellings_whatever_writes_them(model, factory):
    row = factory(name=NAME)
    other = factory(name="Other", center=row.center)
    for typed in TYPED:
        with pytest.raises(IntegrityError):
            model.objects.filter(pk=other.pk).update(name=typed)
        with pytest.raises(IntegrityError):
            factory(center=row.center, name=typed)
        assert model.objects.get(name=typed) == row
