"""The dry run of a checkout changes nothing."""

import pytest
from django.db import connection

from accounts.models import AttemptWindow
from reservations.booking import checkout
from reservations.booking.checkout import PaymentMethod
from reservations.models import Reservation
from reservations.models.status import Status
from roombook.errors import CardDeclined, InvalidRequest, NoSavedCard, SlotUnavailable
from tests.factories_people import SavedCardFactory
from tests.factories_reservations import (
    DECLINED_NUMBER,
    HOUR,
    NOW,
    START,
    PartnerFactory,
    make_booking,
    make_draft,
    make_payment_method,
    make_room,
    update_promo_code,
)
from tests.reservations.checkout.helpers import LEASE_OVER, fault, pay

pytestmark = pytest.mark.django_db


def dump_rows():
    """Return every row of every table except those of rate limits."""
    dump = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if table == AttemptWindow._meta.db_table:
                continue
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            dump[table] = sorted(map(repr, cursor.fetchall()))
    return dump


def dry_run_checkout(reservation, payment_method, **kwargs):
    return checkout.dry_run(
        reservation.pk, user=reservation.user, payment_method=payment_method, now=NOW, **kwargs
    )


def test_dry_run_changes_no_rows(drafted):
    PartnerFactory(code="ACME")
    SavedCardFactory(user=drafted.user)
    make_draft(drafted.user, drafted.room)  # takes over the hold
    before = dump_rows()

    for payment_method in (make_payment_method(save_card=True), PaymentMethod(use_saved_card=True)):
        assert dry_run_checkout(drafted, payment_method, partner_code="ACME").status == Status.NEW
        assert dump_rows() == before


def test_failed_dry_run_changes_no_rows(drafted):
    before = dump_rows()
    with pytest.raises(CardDeclined):
        dry_run_checkout(drafted, make_payment_method(DECLINED_NUMBER))
    with pytest.raises(NoSavedCard):
        dry_run_checkout(drafted, PaymentMethod(use_saved_card=True))
    with pytest.raises(InvalidRequest):
        dry_run_checkout(drafted, make_payment_method("4242424242424241"))
    with pytest.raises(InvalidRequest):
        dry_run_checkout(drafted, PaymentMethod())
    with pytest.raises(InvalidRequest):
        dry_run_checkout(drafted, make_payment_method(), partner_code="NONESUCH")
    assert dump_rows() == before


def test_dry_run_checks_slot_promo_code_and_hours(ada, plan, promo):
    room = make_room()
    reservation = make_draft(ada, room)
    update_promo_code(reservation.pk, "TEN", user=ada, now=NOW)
    other = make_draft(room=room, start=START + 4 * HOUR)
    update_promo_code(other.pk, "TEN", user=other.user, now=NOW)
    pay(other)
    with pytest.raises(Exception, match="used up"):
        dry_run_checkout(reservation, make_payment_method())

    update_promo_code(reservation.pk, "", user=ada, now=NOW)
    plan.is_active = False
    plan.save()
    with pytest.raises(Exception, match="included hours"):
        dry_run_checkout(reservation, make_payment_method())

    late = make_draft(room=room, start=START + 7 * HOUR, hours=1)
    Reservation.objects.filter(pk=late.pk).update(holds_slot=False, hold_until=None)
    make_booking(room=room, start=START + 7 * HOUR, hours=1)
    with pytest.raises(SlotUnavailable):
        dry_run_checkout(late, make_payment_method())


def test_dry_run_does_not_resolve_payments(drafted):
    fault("authorize", "timeout_after")
    pay(drafted)
    before = dump_rows()
    outcome = checkout.dry_run(
        drafted.pk, user=drafted.user, payment_method=make_payment_method(), now=LEASE_OVER
    )
    assert outcome.status == Status.PROCESSING
    assert dump_rows() == before
