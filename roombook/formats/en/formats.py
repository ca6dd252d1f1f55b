"""The formats of roombook/dates.py for Django's own pages and templates."""

DATE_FORMAT = "D Y-m-d"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "D Y-m-d H:i T"
YEAR_MONTH_FORMAT = "M Y"

# What forms of the back office accept.
DATE_INPUT_FORMATS = ["%Y-%m-%d"]
TIME_INPUT_FORMATS = ["%H:%M", "%H:%M:%S"]
