"""The fields of a booking: who sets them, and what becomes of personal ones."""

import pytest

from accounts.act import Act
from accounts.personal_data import TABLES, AtErasure, Exported
from reservations.booking.booking_values import clean_texts
from reservations.desk.booking_form import build_form_field
from reservations.models import Reservation, history
from reservations.models.booking_fields import BOOKING_FIELDS, BookingField, FieldKind
from reservations.serializers import ReservationInfo, build_field
from roombook.errors import InvalidRequest
from tests.factories_reservations import NOW, VALID_NUMBER, make_draft

# What is not a column is a table of its own.
PERSONAL_TABLES = {"attendees": "reservations.Attendee", "notes": "reservations.Note"}
# CONTRIBUTING.md adds a field of this kind.
TEXT = BookingField("motto", "Motto", "Motto", FieldKind.TEXT, "Any.", "Another.", max_length=20)


@pytest.mark.django_db
def test_change_of_a_personal_field_is_recorded_without_its_value():
    draft = make_draft()
    history.record_changes(draft, {"attendees": ("Ada", "Grace")}, Act(None, NOW))
    entry = history.get_changes(draft).first()
    assert entry.changes == {"attendees": [None, "changed"]}
    assert "Ada" not in str(entry.unpublished_event)
    assert entry.unpublished_event["Changed"] == []


@pytest.mark.parametrize("field", BOOKING_FIELDS, ids=lambda field: field.name)
def test_personal_field_is_erased_and_each_column_is_exported(field):
    label = PERSONAL_TABLES.get(field.name, "reservations.Reservation")
    table = TABLES[label]
    if field.is_personal:
        assert table.at_erasure is not AtErasure.STAY
        assert not field.is_column or field.name in table.at_erasure
    if field.is_column:
        assert Reservation._meta.get_field(field.name)
        assert isinstance(table.export, Exported)
        exported = [each.rpartition("=")[2] for each in table.export.fields.split()]
        assert field.name in exported
    if field.create_help and field.is_column:
        assert field.contract_name in ReservationInfo().fields


def test_text_is_cleaned_and_a_card_number_in_it_refused():
    assert clean_texts({"motto": "  Two\n words "}, [TEXT]) == {"motto": "Two words"}
    assert clean_texts({}, [TEXT]) == {}
    with pytest.raises(InvalidRequest) as refused:
        clean_texts({"motto": VALID_NUMBER}, [TEXT])
    assert list(refused.value.fields) == ["motto"]


def test_text_has_its_limit_in_requests_and_in_forms():
    sent = build_field(TEXT, TEXT.create_help)
    entered = build_form_field(TEXT)
    assert (sent.max_length, sent.source, sent.help_text) == (20, "motto", "Any.")
    assert (entered.max_length, entered.label, entered.required) == (20, "Motto", False)
