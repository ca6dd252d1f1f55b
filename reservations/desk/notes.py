"""The notes on the pages of reservations and customers (B18.2)."""

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Sequence
from copy import copy
from itertools import chain
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from unfold.widgets import UnfoldAdminTextareaWidget

from accounts import customer_access, roles
from accounts.models import User
from reservations.booking import notes
from reservations.desk.previews import list_problems
from reservations.models import Note, Reservation
from reservations.models.note import MAX_LENGTH
from roombook.backoffice.widgets import StaffTextField
from roombook.errors import DomainError
from roombook.ids import parse_id

# The latest notes, which a page lists.
MAX_NOTES = 20
# Those of a meeting among others, and those that are loaded for all of them.
MAX_SHOWN_NOTES, MAX_LOADED_NOTES = 3, 1_000
# The names of the fields, which no other form of a page has.
TEXT, DELETE = "note-text", "note-delete"


class NoteForm(forms.Form):
    prefix = "note"

    text = StaffTextField(
        label="New note",
        max_length=MAX_LENGTH,
        widget=UnfoldAdminTextareaWidget({"rows": 2}),
        error_messages={"required": "Enter a text."},
    )


def build_note_list(
    subject: Reservation | User, user: User, *, now: dt.datetime
) -> dict[str, Any] | None:
    """Return the notes that the page of a reservation or customer shows; None if it shows none.

    The page of a customer shows also the notes about reservations at the user's centers, and that
    of a reservation the notes about its customer, if the user may open the customer's page. Each
    entry is a note and whether the user may delete it, the latest first; without a `form`, the user
    may not add one.
    """
    center = subject.room.center_id if isinstance(subject, Reservation) else None
    if not roles.has_permission(user, roles.VIEW_NOTE, center):
        return None
    found = _find_notes(subject, user)
    return {
        "entries": [(note, notes.can_delete(note, user, now=now)) for note in found],
        "form": NoteForm() if roles.has_permission(user, roles.ADD_NOTE, center) else None,
        "are_of_customer": isinstance(subject, User),
    }


def posts_note(request: HttpRequest) -> bool:
    """Whether a page posts one of its notes, and not another form."""
    return request.method == "POST" and not request.POST.keys().isdisjoint({TEXT, DELETE})


def handle_note(
    request: HttpRequest,
    subject: Reservation | User,
    show_page: Callable[..., HttpResponse],
    *,
    now: dt.datetime,
) -> HttpResponse:
    """Add the note that a page posts, or delete the one that it names, and return to the page.

    `show_page(request, extra_context=...)` shows the page with the text of a note that is refused.
    A page posts its notes to its own URL, because its other forms post to the URL in the browser.
    """
    user = roles.get_staff(request)
    found = build_note_list(subject, user, now=now)
    if found is None:
        raise PermissionDenied
    if DELETE in request.POST:
        _delete(request, found)
    elif found["form"] is None:
        raise PermissionDenied
    else:
        form = NoteForm(request.POST)
        if reason := _add(form, subject, user, now):
            messages.error(request, f"The note was not added. {reason}")
            page_request = copy(request)
            page_request.method = "GET"
            return show_page(page_request, extra_context={"notes": {**found, "form": form}})
    return HttpResponseRedirect(f"{request.path}#notes")


def _add(form: NoteForm, subject: Reservation | User, user: User, now: dt.datetime) -> str:
    """Add the note; return why it is refused, or an empty text."""
    if not form.is_valid():
        return " ".join(map(str, form.errors["text"]))
    try:
        notes.add_note(subject, form.cleaned_data["text"], by=user, now=now)
    except DomainError as error:
        return " ".join(list_problems(error))
    return ""


def _delete(request: HttpRequest, found: dict[str, Any]) -> None:
    note_id = parse_id(request.POST[DELETE])
    for note, can_delete in found["entries"]:
        if note.pk != note_id:
            continue
        if not can_delete:
            raise PermissionDenied
        note.delete()
        messages.success(request, "The note was deleted.")
        return
    messages.warning(request, "The note does not exist any more.")


def _find_notes(subject: Reservation | User, user: User) -> list[Note]:
    """Two queries, each of which uses an index; joined by OR they would scan all notes."""
    rows = Note.objects.select_related("author", "reservation__room").order_by("-created_at", "-pk")
    if isinstance(subject, Reservation):
        of_reservations = rows.filter(reservation=subject)
        of_customer = rows.filter(
            customer_access.get_account_filter(user, "customer"), customer=subject.user_id
        )
        if not roles.has_permission(user, roles.VIEW_USER, subject.room.center_id):
            of_customer = rows.none()
    else:
        visible = roles.get_center_filter(user, roles.VIEW_NOTE, "reservation__room__center")
        of_reservations = rows.filter(visible, reservation__user=subject)
        of_customer = rows.filter(customer=subject)
    found = chain(of_reservations[:MAX_NOTES], of_customer[:MAX_NOTES])
    return sorted(found, key=lambda note: (note.created_at, note.pk), reverse=True)[:MAX_NOTES]


def load_notes(rows: Sequence[Reservation], user: User) -> dict[int, list[Note]]:
    """The latest notes about each of the reservations and its customer that the user may see."""
    notes = Note.objects.order_by("-created_at", "-pk")
    of_center = {
        row.pk for row in rows if roles.has_permission(user, roles.VIEW_NOTE, row.room.center_id)
    }
    visible = customer_access.get_account_filter(user, "customer")
    customers = {
        row.user_id
        for row in rows
        if row.pk in of_center and roles.has_permission(user, roles.VIEW_USER, row.room.center_id)
    }
    about_reservations, about_customers = defaultdict(list), defaultdict(list)
    for note in notes.filter(reservation__in=of_center)[:MAX_LOADED_NOTES]:
        about_reservations[note.reservation_id].append(note)
    for note in notes.filter(visible, customer__in=customers)[:MAX_LOADED_NOTES]:
        about_customers[note.customer_id].append(note)
    return {
        row.pk: [*about_reservations[row.pk], *about_customers[row.user_id]][:MAX_SHOWN_NOTES]
        for row in rows
        if row.pk in of_center
    }
