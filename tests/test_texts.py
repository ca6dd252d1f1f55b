"""Text that people write has no control characters, whatever writes it, and stops no export."""

import io

import openpyxl
import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import connection
from django.db.models import CharField, TextField
from django.test import RequestFactory
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import User
from reservations.desk.notes import NoteForm
from reservations.models import Attendee, Partner, WebhookEndpoint
from roombook.backoffice.spreadsheets import MAX_CELL_LENGTH, Sheet, SheetColumn, write_workbook
from roombook.imports.displayed_values import CellKind
from roombook.imports.files import normalize_cell, read_cell
from roombook.spreadsheets import escape_formulas
from roombook.texts import CleanedMixin, clean_line, clean_text, fold_name
from tests.factories_centers import CenterFactory
from tests.factories_people import AdministratorFactory, UserFactory, issue_token
from tests.factories_reservations import NOW, make_booking, make_room
from tests.http import post
from tests.imports import build_csv, load

# Of every kind: C0, DEL, C1, noncharacters. Python and JSON can hold half of a surrogate pair too.
CONTROLS = "\x01\x07\x08\x1b\x1f\x7f\x80\x9f\ufdd0\ufffe\uffff\U0001ffff\U0010fffe"
# Columns whose validators allow no such characters.
ALREADY_STRICT = {"time_zone_id", "password", "currency", "weekdays", "steps"}
ANN = f"\x07Ann{CONTROLS} Lee"


@given(st.text(st.characters()))
def test_cleaning_leaves_no_control_characters_and_is_idempotent(text):
    for clean in (clean_text, clean_line, fold_name):
        once = clean(text)
        assert clean(once) == once
        assert not {*CONTROLS, "\0", "\x0b", "\x0c", "\ud800"} & {*once}
    assert "\n" not in clean_line(text)


def test_lines_and_joiners_stay():
    assert clean_text("a\r\n\tb\nc\u2028d\x0be") == "a\r\n\tb\nc\nd\ne"
    assert clean_line("👩\u200d💻 \u06cc\u200c\u062e") == "👩\u200d💻 \u06cc\u200c\u062e"


@pytest.mark.django_db
def test_every_text_that_a_form_of_the_back_office_saves_is_cleaned():
    request = RequestFactory().get("/admin/")
    request.user = AdministratorFactory()
    checked, pages = 0, admin.site._registry.values()
    for page in (each for each in pages if each.has_add_permission(request)):
        forms = [page.get_form(request)]
        forms += [each.get_formset(request).form for each in page.get_inline_instances(request)]
        for form in forms:
            for field in form._meta.model._meta.concrete_fields:
                is_text = isinstance(field, CharField | TextField) and not field.choices
                if is_text and field.name in form.base_fields and field.model is not Group:
                    checked += 1
                    assert isinstance(field, CleanedMixin) or field.name in ALREADY_STRICT, field
    assert checked > 40


@pytest.mark.django_db
@pytest.mark.time_machine(NOW, tick=False)
def test_api_stores_names_and_texts_without_control_characters(client):
    user, room = UserFactory(), make_room()
    token = issue_token(user)
    names = ("FirstName", "LastName", "CompanyName", "PhoneNumber")
    body = {"Token": token, **{f"New{name}": ANN for name in names}}

    shown = post(client, "/api/account/update-info", body).json()["UpdatedUserInfo"]

    assert {shown[name] for name in names} == {"Ann Lee"}
    user.refresh_from_db()
    assert user.get_full_name() == "Ann Lee Ann Lee"
    response = post(client, "/api/account/update-info", body | {"NewLastName": CONTROLS})
    assert response.json()["Error"]["Details"] == "NewLastName: A name is needed."
    body = {"Token": token, "MeetingRoomId": room.pk}
    body["Attendees"] = [{"Name": ANN, "CompanyName": ANN}]
    body |= {"StartDate": "2027-03-03T09:00", "EndDate": "2027-03-03T10:00"}
    assert post(client, "/api/reservations/create", body).status_code == 200
    guest = Attendee.objects.get(is_creator=False)
    assert (guest.name, guest.company_name) == ("Ann Lee", "Ann Lee")
    for nothing in (CONTROLS, "\u200b\u2060"):
        body["Attendees"] = [{"Name": nothing}]
        response = post(client, "/api/reservations/create", body)
        assert "Attendees.0: A name" in response.json()["Error"]["Details"]


@pytest.mark.django_db
def test_forms_imports_and_commands_store_texts_without_control_characters(client):
    client.force_login(AdministratorFactory())
    center = CenterFactory()
    client.post(reverse("admin:reservations_partner_add"), {"code": "ANN", "name": ANN})
    assert Partner.objects.get().name == "Ann Lee"
    page = client.post(reverse("admin:reservations_partner_add"), {"code": "B", "name": CONTROLS})
    assert page.context["adminform"].form.errors["name"]
    note = NoteForm.base_fields["text"].clean(f"{ANN}\nof 3")
    assert note == "Ann Lee\nof 3"
    assert not any(NoteForm({"text": nothing}).is_valid() for nothing in (CONTROLS, "\u200b\x07"))

    row = {"id": center.pk, "promo_text": ANN, "parking_information": f"{ANN}\n2"}
    load("centers", build_csv(row))
    center.refresh_from_db()
    assert (center.promo_text, center.parking_information) == ("Ann Lee", "Ann Lee\n2")

    # A shell passes bytes that are no UTF-8 as halves of surrogate pairs.
    fields = {"email": "ann@example.com", "first_name": f"{ANN}\udce9", "last_name": "Lee\udcff"}
    call_command("createsuperuser", interactive=False, verbosity=0, **fields)
    assert User.objects.get(email="ann@example.com").get_full_name() == "Ann Lee Lee"
    endpoint = WebhookEndpoint(description=ANN, url="https://a.example", created_at=NOW)
    WebhookEndpoint.objects.bulk_create([endpoint])
    assert endpoint.description == "Ann Lee"
    WebhookEndpoint.objects.update(description=ANN)
    assert WebhookEndpoint.objects.get(description=ANN).description == "Ann Lee"


@pytest.mark.django_db
@pytest.mark.time_machine(NOW, tick=False)
def test_export_leaves_out_what_a_version_before_has_stored(client):
    make_booking()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE accounts_user SET first_name = %s", ["\x07Ann\x1b"])
        cursor.execute("UPDATE centers_meetingroom SET name = %s", [f"Aspen{CONTROLS}"])
    client.force_login(AdministratorFactory())

    for extension in ("xlsx", "csv"):
        url = reverse("admin:reservations_reservation_list_export", args=[extension])
        content = b"".join(client.get(url).streaming_content)
        if extension == "xlsx":
            rows = openpyxl.load_workbook(io.BytesIO(content)).active.iter_rows(values_only=True)
            cells = [cell for row in rows for cell in row]
            assert "Aspen" in cells
            assert any(str(cell).startswith("Ann ") for cell in cells)
        else:
            assert f"Aspen{CONTROLS}".encode() in content


@given(st.text(st.characters()))
def test_workbook_holds_what_it_can_of_any_text(text):
    with write_workbook([Sheet("Texts", [SheetColumn("a", 10)] * 2, [[text, 1]])]) as file:
        _, (cell, _) = openpyxl.load_workbook(file).active.iter_rows(values_only=True)
    # XML has one kind of line break.
    assert (cell or "") == escape_formulas(normalize_cell(text))


def test_cut_text_is_not_imported():
    sheet = Sheet("Texts", [SheetColumn("a", 10)], [["x" * (MAX_CELL_LENGTH + 1)]])
    with write_workbook([sheet]) as file:
        (_, (cell,)) = openpyxl.load_workbook(file).active.iter_rows()
    assert len(cell.value) == MAX_CELL_LENGTH
    with pytest.raises(ValueError, match="may have been cut"):
        read_cell(cell, CellKind.TEXT)
