"""The fields of a booking: who sets them, and what becomes of personal ones."""

import pytest

from accounts.act import Act
from accounts.personal_data import TABLES, AtErasure, Exported
from reservations.models import Reservation, history
from reservations.models.booking_fields import BOOKING_FIELDS
from reservations.serializers import ReservationInfo
from tests.factories_reservations import NOW, make_draft

# What is not a column is a table of its own.
PERSONAL_TABLES = {"attendees": "reservations.Attendee", "notes": "reservations.Note"}


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
