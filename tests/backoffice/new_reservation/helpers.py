"""The form of a new reservation."""

from django.urls import reverse

ADD = reverse("admin:reservations_reservation_add")
PREVIEW = reverse("admin:reservations_draft_preview")


def typed(room, who=None, /, start="2027-03-03 09:00", end="2027-03-03 12:00", **changed):
    (start_day, start_time), (end_day, end_time) = start.split(), end.split()
    return {
        "center": room.center_id,
        "user": who.pk if who else "",
        "email": "",
        "room": room.pk,
        "start_0": start_day,
        "start_1": start_time,
        "end_0": end_day,
        "end_1": end_time,
        "number_of_attendees": "",
        "attendees": "",
        **changed,
    }
