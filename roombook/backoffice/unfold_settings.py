"""The side bar and the appearance of the back office, as django-unfold's setting UNFOLD."""

import re
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy

VIEW_RESERVATION = "reservations.view_reservation"
ADD_RESERVATION = "reservations.add_reservation"
SEE_REPORTS = "reservations.see_reports"


def _page(title: str, icon: str, name: str, permission: str = "") -> dict[str, Any]:
    """A page, for all staff or for those with a permission at any center."""
    item: dict[str, Any] = {"title": title, "icon": icon, "link": reverse_lazy(f"admin:{name}")}
    if permission:
        item["permission"] = lambda request: request.user.has_perm(permission)
    return item


def _list(title: str, icon: str, model: str, **options: Any) -> dict[str, Any]:
    """The list of a model, for staff who may open it: some lists need a role at all centers."""

    def may_open(request: HttpRequest) -> bool:
        model_admin = admin.site.get_model_admin(apps.get_model(model))
        return model_admin.has_view_or_change_permission(request)

    link = reverse_lazy(f"admin:{model.replace('.', '_')}_changelist")
    return {"title": title, "icon": icon, "link": link, "permission": may_open, **options}


def _is_reservation(request: HttpRequest) -> bool:
    """Whether a page is the list or one of its rows, and not another page below the list's URL."""
    return bool(re.search(r"/reservations/reservation/(\d.*)?$", request.path))


# Daily work first, settings last.
SIDEBAR = [
    {
        "items": [
            _page("Dashboard", "dashboard", "index"),
            _page("Today", "today", "reservations_today", VIEW_RESERVATION),
            _page("Timeline", "view_timeline", "reservations_timeline", VIEW_RESERVATION),
            _list("Reservations", "event", "reservations.reservation", active=_is_reservation),
            _page("New reservation", "add_circle", "reservations_reservation_add", ADD_RESERVATION),
            _list("Customers", "group", "accounts.user"),
            _page("Reports", "monitoring", "reservations_reports", SEE_REPORTS),
        ],
    },
    {
        "title": "Centers",
        "separator": True,
        "items": [
            _list("Centers", "apartment", "centers.center"),
            _list("Rooms", "meeting_room", "centers.meetingroom"),
            _list("Rates", "sell", "centers.rate"),
            _list("Price lists", "price_change", "centers.pricelist"),
            _list("Terms of cancellation", "policy", "centers.terms"),
            _list("Services", "room_service", "centers.service"),
            _list("Closures", "event_busy", "centers.closure"),
            _page(
                "Bookings to resolve", "event_note", "reservations_in_closures", VIEW_RESERVATION
            ),
        ],
    },
    {
        "title": "Money",
        "separator": True,
        "items": [
            _list("Payments", "payments", "payments.payment"),
            _list("Refunds", "undo", "payments.refund"),
            _list("Receipts", "receipt_long", "reservations.receipt"),
            _list("Disputes", "gavel", "payments.dispute"),
            _list("Unknown payments", "help", "payments.unknownpayment"),
            _list("Ledger", "account_balance", "payments.ledgerline"),
            _list("Promo codes", "redeem", "reservations.promocode"),
            _list("Allowances", "hourglass_top", "reservations.allowance"),
            _list("Partners", "handshake", "reservations.partner"),
        ],
    },
    {
        "title": "Settings",
        "separator": True,
        "items": [
            _list("Room and service types", "category", "centers.resourcetype"),
            _list("Neighborhoods", "location_city", "centers.neighborhood"),
            _list("Sellers on receipts", "store", "reservations.seller"),
            _list("E-mails", "mail", "accounts.outboxmessage"),
            _list("Webhooks", "webhook", "reservations.webhookendpoint"),
            _list("Webhook deliveries", "outbox", "reservations.webhookdelivery"),
            _list("Staff", "badge", "accounts.staffmember"),
            _list("Roles", "groups", "auth.group"),
            _list("Audit log", "history", "backoffice.auditentry"),
        ],
    },
]

UNFOLD = {
    "SITE_TITLE": "roombook",
    "SITE_HEADER": "roombook",
    "SITE_SYMBOL": "meeting_room",
    "SITE_URL": None,
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda _: static("roombook/icon.svg")}
    ],
    "SHOW_VIEW_ON_SITE": False,
    "BORDER_RADIUS": "6px",
    "LOGIN": {
        "form": "accounts.forms.SignInForm",
        "password_change_form": "accounts.forms.OwnPasswordChangeForm",
    },
    "ACCOUNT": {
        "navigation": [
            {"title": "Change password", "link": reverse_lazy("admin:password_change")},
            {
                "title": "Two-step sign-in",
                "link": reverse_lazy("admin:accounts_second_factor_set_up"),
            },
        ]
    },
    "STYLES": [lambda _: static("roombook/backoffice.css")],
    "SCRIPTS": [
        lambda _: static("roombook/live.js"),
        lambda _: static("roombook/calendar.js"),
        lambda _: static("roombook/names.js"),
    ],
    "COMMAND": {
        "search_models": [
            "reservations.Reservation",
            "accounts.User",
            "centers.MeetingRoom",
            "centers.Center",
            "payments.Payment",
            "reservations.Receipt",
        ]
    },
    "SIDEBAR": {"navigation": SIDEBAR},
    "DASHBOARD_CALLBACK": "reservations.desk.dashboard.dashboard.add_dashboard_to_context",
    "COLORS": {
        "primary": {
            "50": "oklch(98.4% .014 180.72)",
            "100": "oklch(95.3% .051 180.801)",
            "200": "oklch(91% .096 180.426)",
            "300": "oklch(85.5% .138 181.071)",
            "400": "oklch(77.7% .152 181.912)",
            "500": "oklch(70.4% .14 182.503)",
            "600": "oklch(51.1% .096 186.391)",
            "700": "oklch(43.7% .078 188.216)",
            "800": "oklch(38.6% .063 188.416)",
            "900": "oklch(33% .055 189)",
            "950": "oklch(27.7% .046 192.524)",
        },
    },
}
