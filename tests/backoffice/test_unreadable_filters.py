"""A filter that cannot be read lists and exports nothing, and says so, in every list."""

import pytest
from django.contrib import admin
from django.contrib.admin import SimpleListFilter
from django.urls import reverse
from unfold.contrib.filters.admin import RangeDateFilter

from roombook.backoffice import audit_log
from tests.backoffice.reading import list_rows, messages_of
from tests.factories_people import AdministratorFactory
from tests.factories_reservations import make_booking

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

UNREADABLE = ["yesterday", "2027-13-01", "2027-02-30", "15.3.2027", "3/4/2027", "9999-12-31"]
LISTS = {
    "reservations_reservation": ("start_from", "start_to", "when"),
    "payments_payment": ("made", "gateway", "owed"),
    "payments_ledgerline": ("account", "day_from", "day_to"),
    "payments_refund": ("made",),
    "payments_savedcard": ("gateway",),
    "backoffice_auditentry": ("timestamp_from", "timestamp_to", "what"),
}


@pytest.mark.parametrize("name", LISTS)
def test_filter_that_cannot_be_read_lists_and_exports_nothing(client, name):
    client.force_login(AdministratorFactory())
    audit_log.record_change(make_booking(), {}, by=None, note="Seen")

    for parameter in LISTS[name]:
        # The theme's own filters read the last two, and warn.
        values = UNREADABLE[:-2] if parameter.startswith(("timestamp", "day")) else UNREADABLE
        for value in values:
            listed = list_rows(client, name.replace("_", "."), **{parameter: value})
            assert listed == [], (parameter, value)
        page = client.get(reverse(f"admin:{name}_changelist"), {parameter: values[0]})
        assert page.context["cl"].result_count == 0
        assert "A filter cannot be read, so nothing is listed" in messages_of(page)[0][1]
        if name in {"reservations_reservation", "payments_payment", "payments_refund"}:
            export = reverse(f"admin:{name}_list_export", args=["csv"])
            assert client.get(export, {parameter: values[0]}).status_code == 302


def test_filters_that_can_be_read_list_what_they_say(office):
    make_booking()
    url = reverse("admin:reservations_reservation_changelist")
    for query, count in (
        *(({"when": each}, 1) for each in ("", "upcoming", "all")),
        *(({"start_to": each}, 1) for each in ("", "2027-03-04", "2027-3-4")),
        ({"start_to": "2027-02-01"}, 0),
    ):
        assert office.get(url, query).context["cl"].result_count == count, query


def test_every_filter_of_a_list_by_days_is_tested():
    """Other filters are Django's: they refuse what they cannot read, or match nothing."""
    own = {
        f"{page.opts.app_label}_{page.opts.model_name}"
        for page in admin.site._registry.values()
        for spec in page.list_filter
        for each in [spec[1] if isinstance(spec, tuple) else spec]
        if isinstance(each, type) and issubclass(each, RangeDateFilter | SimpleListFilter)
    }
    assert own == LISTS.keys()
