"""Rows that are written by statements made once: the same rows as Django would write."""

import datetime as dt
import uuid

import pytest
from django.db import DatabaseError, IntegrityError, connection, models, transaction
from django.db.models import F, Q, Value
from django.db.models.functions import Concat
from django.db.models.signals import post_save, pre_save
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from accounts.models import AttemptWindow, OutboxMessage, OutboxState
from payments.gateways.sandbox_models import SandboxPayment
from reservations.booking import history
from roombook.db.compiled_queries import datetime_param, int_param, text_param
from roombook.db.prepared_writes import Update, insert_unless_there, prepared_update
from tests.factories_people import UserFactory
from tests.factories_reservations import ReservationFactory

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2027, 3, 1, 12, tzinfo=dt.UTC)


def a_mail(**columns):
    return OutboxMessage(
        **{
            "to": "ada@example.com",
            "kind": "confirmed",
            "subject": "100 % 'booked' %s",
            "text": "Hello",
            "created_at": NOW,
            "next_attempt_at": NOW,
            **columns,
        }
    )


def cells(row):
    """What the database holds of it."""
    [kept] = type(row).objects.filter(pk=row.pk).values()
    return {name: value for name, value in kept.items() if name != "id"}


def test_an_insert_writes_what_djangos_own_would():
    user, key = UserFactory(), uuid.uuid4()
    mine = a_mail(key=key, user=user)
    mine.save()
    [theirs] = OutboxMessage.objects.bulk_create([a_mail(key=key, user=user)])

    assert mine.pk
    assert not mine._state.adding
    assert cells(mine) == cells(theirs)


def test_an_insert_answers_with_the_id_of_each_row():
    first, second = a_mail(), a_mail(subject="Another")
    first.save()
    second.save()

    assert OutboxMessage.objects.get(pk=first.pk).subject == first.subject
    assert OutboxMessage.objects.get(pk=second.pk).subject == "Another"


def test_a_row_may_bring_its_id():
    a_mail(pk=4711).save(force_insert=True)

    assert OutboxMessage.objects.get().pk == 4711
    with pytest.raises(IntegrityError), transaction.atomic():
        a_mail(pk=4711).save(force_insert=True)


def test_an_update_writes_what_djangos_own_would():
    mine, theirs = a_mail(), a_mail()
    mine.save()
    theirs.save()
    became = {"state": OutboxState.SENT, "sent_at": NOW, "next_attempt_at": None, "attempts": 2}
    for name, value in became.items():
        setattr(mine, name, value)
    mine.subject = "Not saved"
    mine.save(update_fields=list(became))
    OutboxMessage.objects.filter(pk=theirs.pk).update(**became)

    assert {**cells(mine), "key": None} == {**cells(theirs), "key": None}


def test_a_whole_row_can_be_saved_again():
    row = a_mail()
    row.save()
    row.subject, row.user = "Better", UserFactory()
    row.save()

    assert OutboxMessage.objects.get() == row
    assert cells(row)["subject"] == "Better"
    assert cells(row)["user_id"] == row.user_id


def test_expressions_are_djangos_own_matter():
    row = a_mail(subject="Booked")
    row.save()
    row.subject = Concat(F("kind"), Value(": "), F("subject"))
    row.save(update_fields=["subject"])
    assert cells(row)["subject"] == "confirmed: Booked"

    another = a_mail(subject=Value("Booked"))
    another.save()
    assert cells(another)["subject"] == "Booked"


def test_a_row_that_is_gone_cannot_be_updated():
    row = a_mail()
    row.save()
    OutboxMessage.objects.all().delete()

    with pytest.raises(DatabaseError, match="did not affect any rows"), transaction.atomic():
        row.save(update_fields=["subject"])
    row.save()  # as Django does: what is not there is made
    assert OutboxMessage.objects.count() == 1


def test_who_listens_hears_of_it():
    heard = []

    def listen(sender, signal, **told):
        heard.append((signal, told.get("created"), told["update_fields"]))

    for signal in (pre_save, post_save):
        signal.connect(listen, sender=OutboxMessage)
    try:
        row = a_mail()
        row.save()
        row.save(update_fields=["subject"])
    finally:
        for signal in (pre_save, post_save):
            signal.disconnect(listen, sender=OutboxMessage)

    assert heard == [
        (pre_save, None, None),
        (post_save, True, None),
        (pre_save, None, frozenset({"subject"})),
        (post_save, False, frozenset({"subject"})),
    ]


def test_a_refused_row_spoils_its_transaction_as_ever():
    with transaction.atomic():
        with pytest.raises(IntegrityError):
            a_mail(state="unheard of").save()
        with pytest.raises(TransactionManagementError):
            OutboxMessage.objects.count()


def test_the_history_keeps_what_it_was_told():
    reservation = ReservationFactory()
    history.record_changes(reservation, {"status": ("New", "Pending")}, by=None, now=NOW)

    entry = history.get_changes(reservation).get()
    assert entry.changes == {"status": ["New", "Pending"]}
    assert (entry.object_id, entry.actor, entry.note) == (reservation.pk, None, "")


@pytest.mark.postgres
def test_rows_with_the_same_columns_are_one_statement():
    with connection.cursor() as cursor:
        connection.prepared = set()
        cursor.execute("DEALLOCATE ALL")
    with CaptureQueriesContext(connection) as asked:
        for subject in ("One", "Two"):
            a_mail(subject=subject).save()

    names = [each["sql"].split(" (")[0] for each in asked]
    assert names[0].startswith("EXECUTE roombook_")
    assert names == [names[0]] * 2


# --- Where nothing is in its way ------------------------------------------------------------------


def test_of_two_rows_with_one_key_the_first_is_there():
    key = uuid.uuid4()

    assert insert_unless_there(SandboxPayment(key=key, state="authorized", amount=5))
    assert not insert_unless_there(SandboxPayment(key=key, state="declined", amount=7))

    kept = SandboxPayment.objects.get()
    assert (kept.state, kept.amount, kept.currency) == ("authorized", 5, "")
    assert kept.created_at is not None


def test_a_row_that_breaks_a_rule_is_refused_where_one_that_is_there_would_be_left():
    with pytest.raises(IntegrityError), transaction.atomic():
        insert_unless_there(SandboxPayment(key=uuid.uuid4(), state="authorized", amount=-5))
    assert not SandboxPayment.objects.exists()


# --- Many rows ------------------------------------------------------------------------------------


@prepared_update
def doubled() -> Update:
    rows = AttemptWindow.objects.filter(
        Q(since__lte=datetime_param("since")) | Q(count=0), key=text_param("key")
    )
    return rows, {"count": F("count") * 2 + int_param("more"), "since": datetime_param("now")}


def test_a_change_of_many_rows_is_what_the_queryset_would_do():
    for place in range(3):
        AttemptWindow.objects.create(scope=f"{place}", key="a", count=place, since=NOW)
    AttemptWindow.objects.create(scope="other", key="b", count=1, since=NOW)
    later = NOW + dt.timedelta(days=1)

    assert doubled(key="a", since=NOW, more=1, now=later) == 3
    assert doubled(key="c", since=NOW, more=1, now=later) == 0
    assert doubled(key="b", since=NOW - dt.timedelta(days=1), more=1, now=later) == 0

    rows = AttemptWindow.objects.order_by("scope").values_list("scope", "count", "since")
    assert list(rows) == [("0", 1, later), ("1", 3, later), ("2", 5, later), ("other", 1, NOW)]


def test_a_change_that_fails_spoils_its_transaction_as_ever():
    AttemptWindow.objects.create(scope="a", key="a", since=NOW)

    @prepared_update
    def below_nothing():
        return AttemptWindow.objects.filter(key=text_param("key")), {"count": F("count") - 1}

    with transaction.atomic():
        with pytest.raises(IntegrityError):
            below_nothing(key="a")
        with pytest.raises(TransactionManagementError):
            AttemptWindow.objects.count()


def test_it_is_written_once():
    runs = []

    @prepared_update
    def counted() -> "tuple[models.QuerySet[AttemptWindow], dict[str, object]]":
        runs.append(1)
        return AttemptWindow.objects.filter(key=text_param("key")), {"count": int_param("count")}

    assert [counted(key="a", count=1), counted(key="b", count=2)] == [0, 0]
    assert len(runs) == 1
