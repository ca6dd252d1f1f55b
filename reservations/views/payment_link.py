"""The pages of a payment link: the bill, the way to the gateway, and the outcome (B26.7)."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import wraps
from http import HTTPStatus
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from accounts.emails import get_service_name
from accounts.limits import (
    PAYMENT_LINK,
    check_declined_cards,
    count_declined_cards,
    get_network_key,
)
from payments import one_time_cards, setups
from payments.gateways.base import GatewayUnavailable
from reservations.booking import payment_links
from reservations.booking.charging import get_payment_action
from reservations.booking.payment_links import ChangeLink, PaymentLink
from reservations.models import Seller
from reservations.notifications import confirmation
from reservations.notifications.cancellation_terms import describe_cancellation
from reservations.notifications.formatting import format_local_time
from roombook import images, money
from roombook.api.serializers import RenderContext
from roombook.errors import (
    DomainError,
    NotFound,
    PaymentSetupNotComplete,
    SlotUnavailable,
)
from roombook.middleware import get_client_address, mark_secret, secret_page

NOT_ENTERED = "No card was entered. You were not charged."


def payment_link_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponseBase]:
    """Decorates a page of a payment link: finds the link, and limits requests.

    Who knows the secret address may do everything here, so a token against forgery adds nothing.
    """

    @wraps(view)
    @csrf_exempt
    @mark_secret
    @secret_page
    @require_http_methods(["GET", "HEAD", "POST"])
    def wrapper(request: HttpRequest, secret: str, **options: str) -> HttpResponse:
        now = timezone.now()
        link = payment_links.find_link(secret)
        if link is None:
            raise Http404
        network = get_network_key(get_client_address(request))
        PAYMENT_LINK.attempt(f"{link.reservation.pk} {network}", now=now)
        return view(request, link, secret=secret, now=now, **options)

    return wrapper


@payment_link_page
def show_payment_link(
    request: HttpRequest, link: PaymentLink, *, secret: str, now: dt.datetime
) -> HttpResponse:
    """Show the bill or the outcome. POST leads to the gateway's page, where the card is entered."""
    reservation = link.reservation
    # Also after the end: who is at the bank then must not be told to ask for a new link.
    if link.has_payment_in_progress() and not link.is_cancelled():
        return _show_payment_in_progress(request, link, secret=secret, now=now)
    if payment_links.has_ended(link, now):
        return _render(request, link, "ended", status=HTTPStatus.GONE)
    if link.is_paid():
        return _render(request, link, "booked", message=confirmation.describe_outcome(reservation))
    if not payment_links.is_payable(link, now):
        return _render(request, link, "ended", status=HTTPStatus.GONE)
    if request.method != "POST":
        problem = payment_links.get_decline_message(reservation, now=now)
        return _render(request, link, "bill", problem=problem)
    try:
        url = _open_setup(request, link, secret=secret, now=now)
    except DomainError as error:
        return _render(request, _reload(secret), "bill", problem=error.message)
    return _render(request, link, "to_gateway", url=url)


def _show_payment_in_progress(
    request: HttpRequest, link: PaymentLink, *, secret: str, now: dt.datetime
) -> HttpResponse:
    """Lead to the bank if it asks for a confirmation. The page asks again until that is given.

    A payment that the customer began elsewhere is not for the eyes of who has the link.
    """
    reservation, url = link.reservation, ""
    if not reservation.payments.open().filter(is_by_link=True).exists():
        return _render(request, link, "in_progress")
    try:
        _, action = get_payment_action(reservation.pk, user=reservation.user, now=now)
    except GatewayUnavailable:
        return _render(request, link, "in_progress")
    if action is not None:
        url = action.url
    elif not _reload(secret).has_payment_in_progress():
        return HttpResponseRedirect(request.path)
    return _render(request, link, "in_progress", url=url)


def _open_setup(request: HttpRequest, link: PaymentLink, *, secret: str, now: dt.datetime) -> str:
    """Create a payment setup, and return the URL of the gateway's page. Raises DomainError."""
    reservation = link.reservation
    total = parse_total(request.POST.get("total", ""))
    link.require_payable(total, now=now)
    check_declined_cards(get_client_address(request), is_by_link=True, now=now)
    setup = setups.create_setup(
        reservation.user, return_url="", reservation_id=reservation.pk, now=now
    )
    path = reverse("payment-link-return", args=[secret, setup.key])
    own_page = RenderContext(request).build_url(f"{path}?total={total}")
    return setups.open_setup(setup, own_page=own_page).at_gateway.url


@payment_link_page
def finish_payment_link(
    request: HttpRequest, link: PaymentLink, *, secret: str, setup: str, now: dt.datetime
) -> HttpResponse:
    """Charge the card that was entered at the gateway, whose page leads here. May be repeated."""
    reservation, problem = link.reservation, ""
    page = reverse("payment-link", args=[secret])
    if not payment_links.is_payable(link, now):
        return HttpResponseRedirect(page)
    total = parse_total(request.GET.get("total", ""))
    try:
        found = one_time_cards.get_setup(reservation.pk, UUID(setup))
        address = get_client_address(request)
        with count_declined_cards(address, is_by_link=True, now=now):
            payment_links.pay(link, found, shown_total=total, network_address=address, now=now)
    except (NotFound, ValueError):
        raise Http404 from None
    except PaymentSetupNotComplete:
        problem = NOT_ENTERED
    except SlotUnavailable as error:
        problem = f"{error.message} You were not charged."
    except DomainError as error:
        problem = error.message
    if not problem:
        return HttpResponseRedirect(page)
    link = _reload(secret)
    if not payment_links.is_payable(link, now):
        return HttpResponseRedirect(page)
    return _render(request, link, "bill", problem=problem, page=page)


def _reload(secret: str) -> PaymentLink:
    """The link with the reservation as it is now: its price may have changed."""
    link = payment_links.find_link(secret)
    if link is None:
        raise Http404
    return link


def parse_total(text: str) -> Decimal:
    """The total that the payer saw. Anything invalid becomes -1, which is no total."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        return Decimal(-1)
    return amount if amount.is_finite() else Decimal(-1)


def _render(
    request: HttpRequest, link: PaymentLink, state: str, *, status: int = 200, **context: str
) -> HttpResponse:
    reservation, now = link.reservation, timezone.now()
    fields: dict[str, object] = {"state": state, "page": request.path, **context}
    if state == "bill":
        outcome = link.outcome
        center = outcome.room.center
        # What has begun cannot be cancelled.
        terms = describe_cancellation(outcome, now=now) if outcome.start > now else ""
        seller = Seller.find(center.pk)
        fields |= {
            "company": seller.legal_name if seller else get_service_name(),
            "logo": images.get_url(seller.logo.name or "") if seller else "",
            "center": center,
            "booking": confirmation.describe_booking(reservation),
            "amount": money.format_amount(link.amount),
            "total": link.amount,
            "until": format_local_time(center, link.until),
            "terms": terms,
        }
        if isinstance(link, ChangeLink):
            fields |= {
                "changed_booking": payment_links.describe_change(link.change),
                "old_total": money.format_amount(link.change.old_total),
                "new_total": money.format_amount(link.change.new_total),
            }
        else:
            fields["lines"] = reservation.line_items.order_by("position")
    return render(request, "reservations/payment_link.html", fields, status=status)
