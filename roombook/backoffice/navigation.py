"""The side bar of the back office: what the day needs first, what is set up once last."""

from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

# Title; then each page with its symbol, the name of its address and who sees it.
MENU: tuple[tuple[str, tuple[tuple[str, str, str, str], ...]], ...] = (
    (
        "",
        (
            ("Today", "today", "index", ""),
            ("Timeline", "view_timeline", "reservations_timeline", "reservations.view_reservation"),
            (
                "Reservations",
                "event",
                "reservations_reservation_changelist",
                "reservations.view_reservation",
            ),
            (
                "New reservation",
                "add_circle",
                "reservations_reservation_add",
                "reservations.add_reservation",
            ),
            ("Customers", "group", "accounts_user_changelist", "accounts.view_user"),
            ("Reports", "monitoring", "reservations_reports", "reservations.see_reports"),
        ),
    ),
    (
        "Centers",
        (
            ("Centers", "apartment", "centers_center_changelist", "centers.view_center"),
            ("Rooms", "meeting_room", "centers_meetingroom_changelist", "centers.view_meetingroom"),
            ("Rates", "sell", "centers_rate_changelist", "centers.view_rate"),
            ("Services", "room_service", "centers_service_changelist", "centers.view_service"),
            ("Closures", "event_busy", "centers_closure_changelist", "centers.view_closure"),
        ),
    ),
    (
        "Money",
        (
            ("Payments", "payments", "payments_payment_changelist", "payments.view_payment"),
            ("Refunds", "undo", "payments_refund_changelist", "payments.view_refund"),
            ("Disputes", "gavel", "payments_dispute_changelist", "payments.view_dispute"),
            (
                "Promo codes",
                "redeem",
                "reservations_promocode_changelist",
                "reservations.view_promocode",
            ),
            (
                "Allowances",
                "hourglass_top",
                "reservations_allowance_changelist",
                "reservations.view_allowance",
            ),
            (
                "Partners",
                "handshake",
                "reservations_partner_changelist",
                "reservations.view_partner",
            ),
        ),
    ),
    (
        "Set-up",
        (
            (
                "Room and service types",
                "category",
                "centers_resourcetype_changelist",
                "centers.view_resourcetype",
            ),
            (
                "Neighborhoods",
                "location_city",
                "centers_neighborhood_changelist",
                "centers.view_neighborhood",
            ),
            ("Mails", "mail", "accounts_outboxmessage_changelist", "accounts.view_outboxmessage"),
            (
                "Roles at centers",
                "badge",
                "accounts_centerrole_changelist",
                "accounts.view_centerrole",
            ),
            ("Groups", "groups", "auth_group_changelist", "auth.view_group"),
            ("History", "history", "auditlog_logentry_changelist", "auditlog.view_logentry"),
        ),
    ),
)


def build_navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The groups of the side bar with the pages that this member of staff may open."""
    groups: list[dict[str, Any]] = []
    for title, pages in MENU:
        items = [
            {"title": name, "icon": symbol, "link": link}
            for name, symbol, address, permission in pages
            if not permission or request.user.has_perm(permission)
            if (link := _get_url(address))
        ]
        if items:
            groups.append({"title": title, "separator": bool(groups), "items": items})
    _mark_active_item(request, [item for group in groups for item in group["items"]])
    return groups


def _mark_active_item(request: HttpRequest, items: list[dict[str, Any]]) -> None:
    """The one page that is open: of several whose address fits, the longest."""
    home = reverse("admin:index")
    fit = [
        item["link"]
        for item in items
        if request.path.startswith(item["link"]) and item["link"] != home
    ]
    open_one = max(fit, key=len, default=home if request.path == home else None)
    for item in items:
        item["active"] = item["link"] == open_one


def _get_url(name: str) -> str | None:
    try:
        return reverse(f"admin:{name}")
    except NoReverseMatch:
        return None
