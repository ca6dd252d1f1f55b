"""Helpers for tests of checkout."""

from datetime import timedelta

from django.db.models import Sum

from accounts.act import Act
from payments.gateways.sandbox_models import SandboxPayment
from reservations.booking import integrity
from reservations.booking.charging import PaymentMethod
from reservations.booking.checkout import check_out
from tests.factories_reservations import NOW
from tests.gateway_faults import add_fault

LEASE_OVER = NOW + timedelta(seconds=61)


def pay_with_saved_card(reservation, *, now=NOW, method=None):
    return check_out(
        Act(reservation.user, now),
        reservation.pk,
        payment_method=method or PaymentMethod(use_saved_card=True),
    )


def fault(operation, kind, times=1):
    return add_fault(operation=operation, kind=kind, times=times)


def get_benefits(plan, promo):
    """Return the consumed hours and promo uses."""
    promo.refresh_from_db()
    return -(plan.entries.aggregate(sum=Sum("hours"))["sum"] or 0), promo.uses


def count_charges():
    return SandboxPayment.objects.aggregate(sum=Sum("captures"))["sum"] or 0


def has_no_problems(now):
    return [str(each) for each in integrity.find_problems(now=now)] == []
