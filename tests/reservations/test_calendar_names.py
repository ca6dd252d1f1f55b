"""Calendar files with names of any characters: nothing of a name leaves its property."""

import pytest
import vobject
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from icalendar import Calendar

from accounts.models.outbox_message import collapse_whitespace
from reservations.notifications import calendar
from reservations.notifications.calendar import MeetingStatus
from tests.factories_reservations import NOW, ReservationFactory, make_room

PROPERTIES = {
    *("UID", "SEQUENCE", "DTSTAMP", "LAST-MODIFIED", "DTSTART", "DTEND", "STATUS"),
    *("SUMMARY", "LOCATION", "DESCRIPTION", "ORGANIZER"),
}
HOSTILE_TEXT = st.text(
    st.one_of(
        st.sampled_from('\r\n\t ,;:\\"^=\x00\x0b\x0c\x1c\x1e\x85\u2028\u2029\u200b\ufeff\x7f'),
        st.characters(),
    ),
    max_size=90,
) | st.sampled_from(
    ["\r\nATTENDEE:mailto:eve@example.com", "\\nEND:VEVENT\\n", '"\r\n BEGIN:VALARM', "é" * 80]
)


@pytest.mark.django_db
@pytest.mark.parametrize("is_invitation", [False, True])
def test_names_of_any_characters_stay_texts_of_their_properties(is_invitation):
    reservation = ReservationFactory(room=make_room(), booked_at=NOW)
    room, center = reservation.room, reservation.room.center

    @hypothesis_settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(*[HOSTILE_TEXT] * 4)
    def check(room_name, center_name, street, person):
        room.name, center.name, center.street1 = room_name, center_name, street
        reservation.user.first_name = person
        if is_invitation:
            text = calendar.render_invitation(reservation, MeetingStatus.CONFIRMED, now=NOW)
        else:
            text = calendar.render_feed([reservation])

        [event] = Calendar.from_ical(text).walk("VEVENT")
        [other] = vobject.readOne(text).contents["vevent"]
        expected = PROPERTIES | ({"ATTENDEE"} if is_invitation else set())
        assert event.keys() == {name.upper() for name in other.contents} == expected
        assert not event.subcomponents
        summary = collapse_whitespace(f"{room_name} at {center_name}")
        assert event["SUMMARY"] == other.summary.value == summary
        assert event["LOCATION"] == other.location.value
        assert event["LOCATION"].startswith(f"{collapse_whitespace(center_name)}, ")
        assert event["DESCRIPTION"] == other.description.value
        lines = text.split("\r\n")
        assert all(len(line.encode()) <= 75 for line in lines)
        assert not any(char in line for line in lines for char in "\r\n")

    check()
