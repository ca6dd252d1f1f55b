"""The side bar of the back office: daily work first, settings last."""

from typing import NotRequired, TypedDict

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse


class MenuItem(TypedDict):
    title: str
    icon: str
    link: str
    active: NotRequired[bool]


class MenuGroup(TypedDict):
    title: str
    separator: bool
    items: list[MenuItem]


# Title of a group -> its pages: title, icon, and the model whose list it is or the name of the URL.
MENU = {
    "": [
        ("Dashboard", "dashboard", "index"),
        ("Today", "today", "reservations_today"),
        ("Timeline", "view_timeline", "reservations_timeline"),
        ("Reservations", "event", "reservations.reservation"),
        ("New reservation", "add_circle", "reservations_reservation_add"),
        ("Customers", "group", "accounts.user"),
        ("Reports", "monitoring", "reservations_reports"),
    ],
    "Centers": [
        ("Centers", "apartment", "centers.center"),
        ("Rooms", "meeting_room", "centers.meetingroom"),
        ("Rates", "sell", "centers.rate"),
        ("Services", "room_service", "centers.service"),
        ("Closures", "event_busy", "centers.closure"),
        ("Bookings to resolve", "event_note", "reservations_in_closures"),
    ],
    "Money": [
        ("Payments", "payments", "payments.payment"),
        ("Refunds", "undo", "payments.refund"),
        ("Receipts", "receipt_long", "reservations.receipt"),
        ("Disputes", "gavel", "payments.dispute"),
        ("Unknown payments", "help", "payments.unknownpayment"),
        ("Promo codes", "redeem", "reservations.promocode"),
        ("Allowances", "hourglass_top", "reservations.allowance"),
        ("Partners", "handshake", "reservations.partner"),
    ],
    "Settings": [
        ("Room and service types", "category", "centers.resourcetype"),
        ("Neighborhoods", "location_city", "centers.neighborhood"),
        ("Sellers on receipts", "store", "reservations.seller"),
        ("E-mails", "mail", "accounts.outboxmessage"),
        ("Webhooks", "webhook", "reservations.webhookendpoint"),
        ("Webhook deliveries", "outbox", "reservations.webhookdelivery"),
        ("Staff", "badge", "accounts.staffmember"),
        ("Roles", "groups", "auth.group"),
        ("Audit log", "history", "backoffice.auditentry"),
    ],
}
# What a page needs that is not the list of a model.
PERMISSIONS = {
    "reservations_today": "reservations.view_reservation",
    "reservations_timeline": "reservations.view_reservation",
    "reservations_in_closures": "reservations.view_reservation",
    "reservations_reservation_add": "reservations.add_reservation",
    "reservations_reports": "reservations.see_reports",
}


def build_account_links(request: HttpRequest) -> list[dict[str, str]]:
    """Return the links in the menu of the user's own account, for the theme."""
    return [{"title": "Two-step sign-in", "link": reverse("admin:accounts_second_factor_set_up")}]


def build_navigation(request: HttpRequest) -> list[MenuGroup]:
    """Return the menu groups with the pages that this user may open, for the theme."""
    groups: list[MenuGroup] = []
    for title, pages in MENU.items():
        items: list[MenuItem] = [
            {"title": name, "icon": icon, "link": link}
            for name, icon, target in pages
            if (link := _get_link(request, target))
        ]
        if items:
            groups.append({"title": title, "separator": bool(groups), "items": items})
    _mark_active_item(request, [item for group in groups for item in group["items"]])
    return groups


def _get_link(request: HttpRequest, target: str) -> str:
    """Return the URL of a page; empty if the user may not open it."""
    app_label, _, model = target.partition(".")
    if model:
        # A permission at one center is not enough for lists that need it at all centers.
        page = admin.site.get_model_admin(apps.get_model(app_label, model))
        is_permitted = page.has_view_or_change_permission(request)
        return reverse(f"admin:{app_label}_{model}_changelist") if is_permitted else ""
    permission = PERMISSIONS.get(target)
    is_permitted = permission is None or request.user.has_perm(permission)
    return reverse(f"admin:{target}") if is_permitted else ""


def _mark_active_item(request: HttpRequest, items: list[MenuItem]) -> None:
    """Mark the open page: of several items whose URL matches, the one with the longest URL."""
    index = reverse("admin:index")
    matching = [
        item["link"]
        for item in items
        if request.path.startswith(item["link"]) and item["link"] != index
    ]
    active = max(matching, key=len, default=index if request.path == index else None)
    for item in items:
        item["active"] = item["link"] == active
