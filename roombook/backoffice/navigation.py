"""The side bar of the back office: daily work first, settings last."""

from typing import Any, NamedTuple

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse


class MenuItem(NamedTuple):
    title: str
    icon: str
    url_name: str
    permission: str = ""


MENU: tuple[tuple[str, tuple[MenuItem, ...]], ...] = (
    (
        "",
        (
            MenuItem("Today", "today", "index"),
            MenuItem(
                "Timeline",
                "view_timeline",
                "reservations_timeline",
                "reservations.view_reservation",
            ),
            MenuItem(
                "Reservations",
                "event",
                "reservations_reservation_changelist",
                "reservations.view_reservation",
            ),
            MenuItem(
                "New reservation",
                "add_circle",
                "reservations_reservation_add",
                "reservations.add_reservation",
            ),
            MenuItem(
                "Customers and staff",
                "group",
                "accounts_user_changelist",
                "accounts.view_user",
            ),
            MenuItem("Reports", "monitoring", "reservations_reports", "reservations.see_reports"),
        ),
    ),
    (
        "Centers",
        (
            MenuItem("Centers", "apartment", "centers_center_changelist", "centers.view_center"),
            MenuItem(
                "Rooms",
                "meeting_room",
                "centers_meetingroom_changelist",
                "centers.view_meetingroom",
            ),
            MenuItem("Rates", "sell", "centers_rate_changelist", "centers.view_rate"),
            MenuItem(
                "Services", "room_service", "centers_service_changelist", "centers.view_service"
            ),
            MenuItem(
                "Closures", "event_busy", "centers_closure_changelist", "centers.view_closure"
            ),
        ),
    ),
    (
        "Money",
        (
            MenuItem(
                "Payments", "payments", "payments_payment_changelist", "payments.view_payment"
            ),
            MenuItem("Refunds", "undo", "payments_refund_changelist", "payments.view_refund"),
            MenuItem("Disputes", "gavel", "payments_dispute_changelist", "payments.view_dispute"),
            MenuItem(
                "Promo codes",
                "redeem",
                "reservations_promocode_changelist",
                "reservations.view_promocode",
            ),
            MenuItem(
                "Allowances",
                "hourglass_top",
                "reservations_allowance_changelist",
                "reservations.view_allowance",
            ),
            MenuItem(
                "Partners",
                "handshake",
                "reservations_partner_changelist",
                "reservations.view_partner",
            ),
        ),
    ),
    (
        "Settings",
        (
            MenuItem(
                "Room and service types",
                "category",
                "centers_resourcetype_changelist",
                "centers.view_resourcetype",
            ),
            MenuItem(
                "Neighborhoods",
                "location_city",
                "centers_neighborhood_changelist",
                "centers.view_neighborhood",
            ),
            MenuItem(
                "E-mails",
                "mail",
                "accounts_outboxmessage_changelist",
                "accounts.view_outboxmessage",
            ),
            MenuItem("Roles", "groups", "auth_group_changelist", "auth.view_group"),
            MenuItem(
                "Roles at centers",
                "badge",
                "accounts_centerrole_changelist",
                "accounts.view_centerrole",
            ),
            MenuItem(
                "Audit log",
                "history",
                "backoffice_auditentry_changelist",
                "backoffice.view_auditentry",
            ),
        ),
    ),
)


def build_navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the menu groups with the pages that this user may open, for the theme."""
    groups: list[dict[str, Any]] = []
    for title, pages in MENU:
        items = [
            {"title": item.title, "icon": item.icon, "link": url}
            for item in pages
            if not item.permission or request.user.has_perm(item.permission)
            if (url := _get_url(item.url_name))
        ]
        if items:
            groups.append({"title": title, "separator": bool(groups), "items": items})
    _mark_active_item(request, [item for group in groups for item in group["items"]])
    return groups


def _mark_active_item(request: HttpRequest, items: list[dict[str, Any]]) -> None:
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


def _get_url(name: str) -> str | None:
    try:
        return reverse(f"admin:{name}")
    except NoReverseMatch:
        return None
