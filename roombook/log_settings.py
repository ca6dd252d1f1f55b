"""The setting LOGGING: one handler, which writes to standard output."""

# Errors of Django by which anybody could fill the log with tracebacks.
REFUSED_REQUESTS = (
    *("DisallowedHost", "DisallowedModelAdminLookup", "DisallowedModelAdminToField"),
    *("RequestDataTooBig", "TooManyFieldsSent", "TooManyFilesSent"),
)


def build_logging(level: str, *, is_debug: bool) -> dict[str, object]:
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {
            "request_id": {"()": "roombook.logging.RequestIdFilter"},
            "unavailable": {"()": "roombook.logging.UnavailableFilter"},
        },
        "formatters": {
            "json": {"()": "roombook.logging.JsonLogFormatter"},
            "plain": {"()": "roombook.logging.PlainLogFormatter"},
        },
        "handlers": {
            "stdout": {
                "class": "logging.StreamHandler",
                "stream": "ext://sys.stdout",
                "filters": ["request_id"],
                "formatter": "plain" if is_debug else "json",
            },
        },
        "root": {"handlers": ["stdout"], "level": level},
        "loggers": {
            # Without Django's own handlers (console, mail): one handler writes everything.
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "level": "ERROR", "propagate": True},
            # Without a warning for every refused request, which has its log line already. A
            # response with status 503 is a warning.
            "django.request": {"level": "ERROR", "filters": ["unavailable"]},
            **{f"django.security.{error}": {"level": "CRITICAL"} for error in REFUSED_REQUESTS},
            # SQL statements contain customers' data.
            "django.db.backends": {"level": "INFO"},
            # Each receipt as PDF has a hundred lines about its fonts.
            "fontTools": {"level": "WARNING"},
            # Below WARNING the SDK logs every request, card numbers included.
            "stripe": {"level": "WARNING"},
        },
    }
