"""The customer of a new reservation by staff."""

import re
from functools import partial

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import outbox
from accounts.act import Act
from accounts.models import OutboxMessage, User
from centers.models import MeetingRoom
from reservations.booking import cancellation
from reservations.booking.drafts import create_draft_for_new_customer
from reservations.display import get_reservation_url
from reservations.models import Reservation
from roombook.errors import InvalidRequest
from tests.backoffice.new_reservation.helpers import ADD, typed
from tests.backoffice.reading import messages_of, words
from tests.backoffice.reservation_pages import confirm
from tests.concurrency import run_concurrently
from tests.factories_people import AdministratorFactory, StaffFactory, UserFactory
from tests.factories_reservations import NOW, ReservationFactory, make_draft, make_room

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

CUSTOMERS = reverse("admin:reservations_draft_customers")


def offered(client, term):
    return client.get(CUSTOMERS, {"term": term}).json()["results"]


def test_unknown_customer_is_suggested_and_booked_by_the_whole_email_only(
    client, staff, room, user
):
    make_draft(user, make_room())
    client.force_login(staff("Desk", room.center))
    assert offered(client, "lovel") == offered(client, "ada@example") == []
    assert user.email not in client.get(ADD, {"center": room.center_id, "user": user.pk}).text
    [found] = offered(client, "ADA@example.com")
    client.post(ADD, typed(room, user=found["id"]))
    client.post(ADD, typed(room, email=" ADA@example.com", **NEXT_DAY))
    assert [each.user for each in Reservation.objects.filter(room=room)] == [user, user]
    client.force_login(AdministratorFactory())
    assert user.email in {each["id"] for each in offered(client, "lovel")}
    assert offered(client, "") == offered(client, " ") == []


def test_desk_cannot_book_for_a_member_of_staff(client, staff, room):
    StaffFactory(email="colleague@example.com")
    client.force_login(staff("Desk", room.center))
    answer = client.post(ADD, typed(room, email="colleague@example.com"))
    assert "Only administrators can book for a member of staff." in words(answer)
    assert not Reservation.objects.exists()


def test_new_customer_whose_address_is_taken_meanwhile_is_refused(user):
    with pytest.raises(InvalidRequest) as refused:
        create_draft_for_new_customer(Act(None, NOW), {**NEW, "email": "ADA@example.com"})
    assert list(refused.value.fields) == ["customer.email"]


NEW = {"email": "New@Example.com", "first_name": "Grace", "last_name": "Hopper"}
NEXT_DAY = {"start": "2027-03-04 09:00", "end": "2027-03-04 12:00"}


def test_new_customer_is_created_with_draft(client, staff, room):
    client.force_login(staff("Desk", room.center))
    client.post(ADD, typed(room, **NEW, company_name="Navy"))
    made = Reservation.objects.get().user
    assert (made.email, made.get_full_name()) == ("new@example.com", "Grace Hopper")
    assert made.company_name == "Navy"
    assert not made.has_usable_password()
    assert not made.is_staff
    assert not OutboxMessage.objects.exists()


def test_new_customer_with_only_a_phone_number_gets_no_emails(client, staff, room):
    new = {**NEW, "email": "", "phone_number": "+1 303 555 0100"}
    client.force_login(staff("Desk", room.center))
    client.post(ADD, typed(room, **new))
    draft = Reservation.objects.get()
    taken = {"way": "cash", "expected_amount": str(draft.total_cost)}
    confirm(client, draft, "take-payment", **taken)

    customer = draft.user
    assert (customer.known_email, customer.phone_number) == ("", "+1 303 555 0100")
    assert draft.attendees.get().email_address == ""
    assert "no e-mail address" in messages_of(confirm(client, draft, "resend"))[-1][1]
    [*outbox.send_due_messages(clock=timezone.now)]
    assert mail.outbox == []
    assert offered(client, "303 555 0100")[0]["text"] == "Grace Hopper, +1 303 555 0100"
    # Others like that, and an address that is entered later.
    client.post(ADD, typed(room, **new, **NEXT_DAY))
    assert Reservation.objects.count() == 2
    contact = reverse("admin:accounts_user_contact", args=[customer.pk])
    assert "no-address" not in client.get(contact).text
    for email, kept in (("", ""), (NEW["email"], "new@example.com")):
        client.post(contact, {**NEW, "email": email})
        customer.refresh_from_db()
        assert customer.known_email == kept
    assert not OutboxMessage.objects.filter(kind="e-mail change").exists()


def test_refused_form_creates_no_customer_and_keeps_its_data(office, room, user):
    ReservationFactory(room=room)
    answer = office.post(ADD, typed(room, **NEW))
    assert "The room is not available at that time." in words(answer)
    assert not User.objects.filter(email="new@example.com").exists()
    assert 'value="Grace"' in answer.text
    answer = office.post(ADD, typed(room, user=user.email))
    assert '<option value="ada@example.com" selected>' in answer.text


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({}, "Choose a customer, or enter an e-mail address."),
        ({**NEW, "user": "ada@example.com"}, "Choose a customer or enter a new one, not both."),
        ({"email": "ada@example.com", "first_name": "Ada"}, "To book for it, leave the names"),
        ({"email": "new@example.com", "first_name": "Grace"}, "Enter both names to create one."),
        ({"first_name": "Grace"}, "Enter an e-mail address or a telephone number."),
        ({**NEW, "email": "nobody"}, "Enter a valid email address."),
        ({**NEW, "last_name": "4242 4242 4242 4242"}, "This looks like a card number"),
        ({"email": "gone@example.com"}, "is deactivated."),
        ({**NEW, "first_name": "\0"}, "Null characters are not allowed."),
    ],
)
def test_customer_invalid_data_shows_error(office, room, user, changed, message):
    UserFactory(email="gone@example.com", is_active=False)
    answer = office.post(ADD, typed(room, **changed))
    assert answer.status_code == 200
    assert message in words(answer)
    assert not Reservation.objects.exists()


def read_submission(client, room):
    page = client.get(ADD, {"center": room.center_id}).content.decode()
    return re.search(r'name="submission" value="([^"]+)"', page)[1]


@pytest.mark.parametrize("who", ["new", "known"])
def test_form_that_is_sent_twice_creates_one_draft_and_leads_to_it(office, room, user, who):
    fields = typed(room, **NEW) if who == "new" else typed(room, user)
    fields["submission"] = read_submission(office, room)

    first, second = (office.post(ADD, fields) for _ in range(2))

    draft = Reservation.objects.get()
    assert first.url == second.url == get_reservation_url(draft.pk)
    # Another page, and another form on the same page, are no repetition.
    again = office.post(ADD, {**fields, "submission": read_submission(office, room)})
    assert (again.status_code, Reservation.objects.count()) == (
        (200, 1) if who == "new" else (302, 2)
    )


def test_form_is_sent_again_after_its_draft_has_ended_or_after_an_error(office, room, user):
    fields = {**typed(room, user), "submission": read_submission(office, room)}
    office.post(ADD, fields)
    cancellation.cancel(Act(user, timezone.now(), is_staff=True), Reservation.objects.get().pk)

    urls = {office.post(ADD, fields).url for _ in range(2)}

    held = Reservation.objects.get(holds_slot=True)
    assert urls == {get_reservation_url(held.pk)}
    fields = {**typed(room, **NEW, **NEXT_DAY), "submission": read_submission(office, room)}
    for is_blocked, status in ((True, 200), (False, 302)):
        MeetingRoom.objects.update(is_blocked=is_blocked)
        assert office.post(ADD, fields).status_code == status
    assert User.objects.filter(email="new@example.com").count() == 1


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_double_click_for_a_new_customer_creates_one_draft():
    staff, room = AdministratorFactory(), make_room()
    clients = [Client(), Client(), Client()]
    for client in clients:
        client.force_login(staff)
    fields = {**typed(room, **NEW), "submission": read_submission(clients[0], room)}

    answers = run_concurrently([partial(client.post, ADD, fields) for client in clients])

    assert {each.status_code for each in answers} == {302}
    assert len({each.url for each in answers}) == Reservation.objects.count() == 1
