"""A name is the same however it is typed: in imports, in forms and in the database."""

# ruff: noqa: RUF001 (letters that look alike are what these tests are about)
import pytest
from django.db import IntegrityError, connection, transaction
from django.urls import reverse

from centers.models import Center, MeetingRoom, Rate, ResourceType, Service
from roombook.texts import clean_line, fold_name
from tests.factories_centers import (
    CenterFactory,
    MeetingRoomFactory,
    RateFactory,
    ResourceTypeFactory,
    ServiceFactory,
)
from tests.factories_people import AdministratorFactory
from tests.imports import build_csv, check, get_errors, load, room_row

NAME = "Café Röntgen 12"
# What is stored as NAME, and what only means it.
TYPED = {
    "decomposed": "Cafe\u0301 Ro\u0308ntgen 12",
    "no-break space": "Café\u00a0Röntgen\u202f12",
    "two spaces": " Café  Röntgen \t12 ",
    "line break": "Café\r\nRöntgen\u202812",
    "zero-width spaces": "Ca\u200bfé\u2060 Röntgen\ufeff 12",
    "soft hyphen": "Ca\u00adfé Rönt\u00adgen 12",
    "marks of direction": "\u200eCafé \u202eRöntgen\u202c 12",
    "control characters": "Café\x07 Röntgen\x1b 12\ufffe",
}
MEANT = {
    "full width": "Ｃａｆé　Röntgen １２",
    "upper case": "CAFÉ RÖNTGEN 12",
    "joiners": "Ca\u200dfé Röntgen\u200c 12",
    "variation selector": "Café Röntgen\ufe0f 12",
}
ALL = {**TYPED, **MEANT}
MODELS = [(MeetingRoom, MeetingRoomFactory), (Rate, RateFactory), (Service, ServiceFactory)]


@pytest.mark.parametrize("typed", ALL.values(), ids=ALL)
def test_name_is_stored_in_one_spelling_and_folded_to_one(typed):
    assert (clean_line(typed) == NAME) is (typed in TYPED.values())
    assert fold_name(typed) == fold_name(NAME) == "café röntgen 12"


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("İstanbul", "ISTANBUL", True),
        ("ısı", "ISI", True),
        ("Straße", "STRASSE", True),
        ("Rock’n’Roll", "rock'n'roll", True),
        ("1–3", "1-3", True),
        ("ﬁn", "fin", True),
        ("ハ゛ラ", "バラ", False),
        ("ﾊﾞﾗ", "バラ", True),
        ("Café", "Cafe", False),
        ("バラ", "ハラ", False),
        ("A 1", "A1", False),
        ("Room 1", "Room l", False),
    ],
)
def test_names_are_the_same_but_for_case_width_and_punctuation(one, other, is_same):
    assert (fold_name(one) == fold_name(other)) is is_same


@pytest.mark.django_db
@pytest.mark.parametrize("typed", ALL.values(), ids=ALL)
def test_import_finds_every_row_by_its_name(typed):
    center = CenterFactory(name=NAME)
    rate = RateFactory(center=center, name=NAME)
    room = MeetingRoomFactory(center=center, name=NAME, rate=None)
    service = ServiceFactory(center=center, name=NAME, resource_type__name=NAME)

    row = room_row(center, name=typed, rate=typed, capacity="77") | {"center": typed}
    assert load("rooms", build_csv(row)) == {"changed": 1}
    row = {"center": typed, "name": typed, "type": typed, "minimum_booking": "3"}
    assert load("services", build_csv(row)) == {"changed": 1}
    row = {"center": typed, "name": typed, "setup_fee": "9"}
    assert load("rates", build_csv(row)) == {"changed": 1}
    row = {"name": typed, "city": center.city, "state": center.state, "rank": "5"}
    assert load("centers", build_csv(row)) == {"changed": 1}

    for each in (center, rate, room, service):
        each.refresh_from_db()
        assert each.name == clean_line(typed)
    assert (room.capacity, room.rate, service.minimum_booking, center.rank) == (77, rate, 3, 5)


@pytest.mark.django_db
def test_two_spellings_in_one_file_are_one_row_and_unchanged_ones_are_no_change():
    center = CenterFactory()
    rows = [room_row(center, name=name) for name in (NAME, TYPED["decomposed"])]
    [(_, _, why)] = get_errors("rooms", build_csv(*rows))
    assert why == "Row 2 is the same room."

    load("rooms", build_csv(rows[0]))
    for name in TYPED.values():
        _, result = check("rooms", build_csv(room_row(center, name=name)))
        assert result.totals["skip"] == 1


@pytest.mark.django_db
@pytest.mark.parametrize("typed", ALL.values(), ids=ALL)
@pytest.mark.parametrize(("model", "factory"), MODELS, ids=lambda each: each.__name__)
def test_form_refuses_the_name_of_another_row(client, model, factory, typed):
    row = factory(name=NAME)
    client.force_login(AdministratorFactory())
    name = model._meta.model_name
    kind = ResourceTypeFactory(is_service=model is Service)
    fields = {"center": row.center_id, "name": typed, "resource_type": kind.pk, "capacity": "8"}
    fields |= dict.fromkeys(("turnaround_minutes", "minimum_booking", "position"), "0")

    response = client.post(reverse(f"admin:centers_{name}_add"), fields)

    errors = response.context["adminform"].form.errors
    kind = row._meta.verbose_name.split()[-1]
    assert errors["name"] == [f"This center already has a {kind} with this name."]
    assert model.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("model", "factory"), MODELS, ids=lambda each: each.__name__)
def test_constraint_refuses_other_spellings_whatever_writes_them(model, factory):
    row, other = factory(name=NAME), factory(name="Other")
    other.center = row.center
    other.save()
    for typed in TYPED.values():
        with pytest.raises(IntegrityError):
            model.objects.filter(pk=other.pk).update(name=typed)
        with pytest.raises(IntegrityError):
            factory(center=row.center, name=typed)
        assert model.objects.get(name=typed) == row


@pytest.mark.django_db
def test_names_stored_before_are_found_and_several_are_not_guessed():
    center = CenterFactory()
    rates = [RateFactory(center=center, name=name) for name in ("A", "B")]
    set_stored_name(rates[0], TYPED["decomposed"])
    row = room_row(center, rate=NAME)
    assert get_errors("rooms", build_csv(row)) == []

    set_stored_name(rates[1], NAME)
    [(_, _, why)] = get_errors("rooms", build_csv(row))
    assert why == "This center has several rates of that name."
    [(_, _, why)] = get_errors("rates", build_csv({"id": rates[0].pk, "name": NAME}))
    assert why == f"There is a rate of that name already ({rates[1].pk})."


def set_stored_name(row, name):
    """Store a name as a version without this rule did."""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {row._meta.db_table} SET name = %s WHERE id = %s", [name, row.pk])


@pytest.mark.django_db
def test_types_and_searches_use_the_same_spelling(client):
    ResourceTypeFactory(name=NAME)
    CenterFactory(name=TYPED["zero-width spaces"])
    MeetingRoomFactory(name=NAME)
    with pytest.raises(IntegrityError), transaction.atomic():
        ResourceType.objects.create(name=TYPED["decomposed"])
    assert Center.objects.get(name_folded="cafe rontgen 12").name == NAME
    client.force_login(AdministratorFactory())
    for typed in TYPED.values():
        page = client.get(reverse("admin:centers_meetingroom_changelist"), {"q": typed})
        assert page.context["cl"].result_count == 1
