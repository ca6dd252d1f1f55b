"""Date and time formats of the back office, in Python and in templates."""

import datetime as dt
from zoneinfo import ZoneInfo

from django.utils import timezone
from django.utils.formats import date_format

from roombook import dates

DENVER = ZoneInfo("America/Denver")
NINE = dt.datetime(2027, 3, 1, 16, tzinfo=dt.UTC)


def test_templates_and_python_format_dates_alike():
    with timezone.override(DENVER):
        local = timezone.localtime(NINE)
        assert date_format(local, "DATETIME_FORMAT") == dates.format_datetime(NINE, DENVER)
        assert date_format(local.date()) == dates.format_day(local)
        assert date_format(local, "YEAR_MONTH_FORMAT") == dates.format_month(local)
