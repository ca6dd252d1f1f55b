"""The formats of roombook/dates.py for Django's own pages and templates."""

import re

from babel.dates import get_date_format
from django.conf import settings

DATE_FORMAT = "D Y-m-d"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "D Y-m-d H:i T"
YEAR_MONTH_FORMAT = "M Y"

# The short form of the locale, such as `M/d/yy`, with its own separators: 3.4.2027 is no American
# date, and who types it does not mean March.
LOCAL_DAY = get_date_format("short", settings.LOCALE).pattern
for _letters, _name in {"d+": "%d", "M+": "%m", "y+": "%Y"}.items():
    LOCAL_DAY = re.sub(_letters, _name, LOCAL_DAY)

# What forms of the back office accept. Times are read by the widget before (`read_time_of_day`).
DATE_INPUT_FORMATS = ["%Y-%m-%d", LOCAL_DAY, LOCAL_DAY.replace("%Y", "%y")]
TIME_INPUT_FORMATS = ["%H:%M", "%H:%M:%S"]
