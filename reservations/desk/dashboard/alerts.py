"""The dashboard's alerts: bookings, payments, disputes, e-mails and webhooks."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from django.urls import reverse

from accounts import roles
from accounts.customer_access import get_customer_filter
from accounts.models import OutboxMessage, User
from payments import refunds
from payments.models import Payment, Refund
from payments.unknown_payments import get_unresolved
from reservations.booking import alerts
from reservations.desk.bulk_actions import get_closed_bookings_url
from reservations.display import format_place_and_time, get_reservation_url
from reservations.models import Reservation, WebhookEndpoint
from roombook import dates, money

# More alerts than this are not looked for.
MAX_ALERTS = 10
# More unsent e-mails than this are one alert.
MAX_EMAIL_ALERTS = 3
MAX_COUNTED_EMAILS = 100
WAITING = "Waiting to be sent"
MAX_COUNTED_BOOKINGS = 100
# Payments for older meetings are found by reconcile_payments, which checks all of them.
LOOKBACK = dt.timedelta(days=31)


@dataclass(frozen=True, slots=True)
class DashboardAlert:
    """Something that needs attention, with a link to where it can be resolved."""

    title: str
    detail: str
    url: str


def get_alert_topics(user: User) -> list[str]:
    """What the user may see alerts about; empty if they may not see any."""
    topics = []
    if roles.has_permission(user, roles.CHANGE_RESERVATION):
        topics.append("bookings")
    if roles.has_permission(user, roles.VIEW_PAYMENT):
        topics.append("payments")
    if roles.has_permission_everywhere(user, roles.VIEW_EMAIL):
        topics.append("e-mails")
    if roles.has_permission(user, roles.VIEW_WEBHOOK):
        topics.append("webhooks")
    return topics


def find_alerts(user: User, now: dt.datetime) -> Iterator[DashboardAlert]:
    """Bookings to resolve first, and payments, the most urgent before the others.

    Then disputes, e-mails and webhooks.
    """
    if roles.has_permission(user, roles.CHANGE_RESERVATION):
        yield from _find_unresolved_bookings(user, now)
    if roles.has_permission(user, roles.VIEW_PAYMENT):
        yield from _find_payment_alerts(user, now)
    if roles.has_permission_everywhere(user, roles.VIEW_UNKNOWN_PAYMENT):
        for unknown in get_unresolved().exclude(currency="")[:MAX_ALERTS]:
            yield DashboardAlert(
                f"{money.format_amount(unknown.amount)} at the gateway for no booking",
                ", ".join(filter(None, (unknown.reference, unknown.description))),
                reverse("admin:payments_unknownpayment_changelist"),
            )
    if roles.has_permission(user, roles.VIEW_DISPUTE):
        yield from _find_disputes(user)
    if roles.has_permission_everywhere(user, roles.VIEW_EMAIL):
        emails = alerts.get_unsent_emails(now=now, since=now - LOOKBACK)
        emails = emails.filter(get_customer_filter(user, "user"))
        yield from _describe_emails(list(emails[: MAX_COUNTED_EMAILS + 1]))
    if roles.has_permission(user, roles.VIEW_WEBHOOK):
        yield from _find_disabled_webhooks(user)


def _find_unresolved_bookings(user: User, now: dt.datetime) -> Iterator[DashboardAlert]:
    """One alert for all of them, which names the first."""
    rows = Reservation.objects.filter(roles.get_center_filter(user, roles.CHANGE_RESERVATION))
    rows = rows.unresolved(now)
    rows = rows.select_related("room__center").order_by("start", "pk")
    found = list(rows[: MAX_COUNTED_BOOKINGS + 1])
    if not found:
        return
    title = "1 booking to resolve" if len(found) == 1 else f"{len(found)} bookings to resolve"
    if len(found) > MAX_COUNTED_BOOKINGS:
        title = f"More than {MAX_COUNTED_BOOKINGS} bookings to resolve"
    detail = f"Move, cancel or e-mail. The first: {format_place_and_time(found[0])}"
    yield DashboardAlert(title, detail, get_closed_bookings_url())


def _find_payment_alerts(user: User, now: dt.datetime) -> Iterator[DashboardAlert]:
    """One alert for each payment: that is enough to send staff to its page."""
    payments = Payment.objects.filter(
        roles.get_center_filter(user, roles.VIEW_PAYMENT, "reservation__room__center"),
        reservation__start__gte=now - LOOKBACK,
    )
    seen: set[int] = set()
    for find in (
        partial(alerts.find_expiring_authorizations, now=now),
        alerts.find_lost_authorizations,
        alerts.find_captured_without_booking,
        alerts.find_refused_refunds,
        alerts.find_refunds_by_hand,
        partial(alerts.find_unresolved_payments, now=now),
    ):
        for payment, problem in find(payments):
            if payment.pk not in seen:
                seen.add(payment.pk)
                yield _describe_payment(user, payment, problem)


def _describe_payment(user: User, payment: Payment, problem: str) -> DashboardAlert:
    """Lead to the refund that staff have to handle, if there is one. Else to the booking."""
    refund = None
    if roles.has_permission(user, roles.VIEW_REFUND):
        unhandled = refunds.get_unhandled().filter(payment=payment).order_by("pk").first()
        by_hand = Refund.objects.due_by_hand().filter(payment=payment).order_by("pk").first()
        refund = unhandled or by_hand
    if refund:
        amount = f"Refund of {money.format_amount(refund.amount)}"
        url = reverse("admin:payments_refund_change", args=[refund.pk])
    else:
        amount = money.format_amount(payment.amount)
        url = get_reservation_url(payment.reservation_id)
    detail = problem[:1].upper() + problem[1:]
    return DashboardAlert(f"{amount} of reservation {payment.reservation_id}", detail, url)


def _find_disputes(user: User) -> Iterator[DashboardAlert]:
    payments = Payment.objects.filter(
        roles.get_center_filter(user, roles.VIEW_DISPUTE, "reservation__room__center")
    )
    for dispute in alerts.get_open_disputes(payments)[:MAX_ALERTS]:
        deadline = (
            f", answer by {dates.format_day(dispute.respond_by)}" if dispute.respond_by else ""
        )
        words = dispute.reason_words or dispute.status_words
        yield DashboardAlert(
            f"Dispute about {money.format_amount(dispute.amount)}{deadline}",
            f"Reservation {dispute.payment.reservation_id}: {words}",
            reverse("admin:payments_dispute_change", args=[dispute.pk]),
        )


def _find_disabled_webhooks(user: User) -> Iterator[DashboardAlert]:
    webhooks = WebhookEndpoint.objects.disabled_automatically().filter(
        roles.get_center_filter(user, roles.VIEW_WEBHOOK, "center")
    )
    for webhook in webhooks.order_by("pk")[:MAX_ALERTS]:
        yield DashboardAlert(
            f"Webhook disabled: {webhook.description}",
            webhook.disabled_reason,
            reverse("admin:reservations_webhookendpoint_change", args=[webhook.pk]),
        )


def _describe_emails(emails: list[OutboxMessage]) -> Iterator[DashboardAlert]:
    if len(emails) > MAX_EMAIL_ALERTS:
        is_capped = len(emails) > MAX_COUNTED_EMAILS
        count = f"More than {MAX_COUNTED_EMAILS}" if is_capped else str(len(emails))
        error = next((email.last_error for email in emails if email.last_error), "")
        yield DashboardAlert(
            f"{count} e-mails were not sent",
            error or WAITING,
            reverse("admin:accounts_outboxmessage_changelist"),
        )
        return
    for email in emails:
        yield DashboardAlert(
            f"E-mail not sent: {email.kind}",
            ". ".join(filter(None, (email.about, email.last_error or WAITING))),
            reverse("admin:accounts_outboxmessage_change", args=[email.pk]),
        )
