"""The appearance of the back office, as django-unfold's setting UNFOLD."""

UNFOLD = {
    "SITE_TITLE": "roombook",
    "SITE_HEADER": "roombook",
    "SITE_SYMBOL": "meeting_room",
    "SITE_URL": None,
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": "roombook.backoffice.site.get_icon_url"}
    ],
    "SHOW_VIEW_ON_SITE": False,
    "BORDER_RADIUS": "6px",
    "LOGIN": {
        "form": "accounts.forms.SignInForm",
        "password_change_form": "accounts.forms.OwnPasswordChangeForm",
    },
    "ACCOUNT": {"navigation": "roombook.backoffice.navigation.build_account_links"},
    "STYLES": ["roombook.backoffice.site.get_stylesheet_url"],
    "SCRIPTS": [
        "roombook.backoffice.site.get_preview_script_url",
        "roombook.backoffice.site.get_calendar_script_url",
        "roombook.backoffice.site.get_names_script_url",
    ],
    "COMMAND": {
        "search_models": [
            "reservations.Reservation",
            "accounts.User",
            "centers.MeetingRoom",
            "centers.Center",
        ]
    },
    "SIDEBAR": {"navigation": "roombook.backoffice.navigation.build_navigation"},
    "DASHBOARD_CALLBACK": "reservations.admin.dashboard.dashboard.add_dashboard_to_context",
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
