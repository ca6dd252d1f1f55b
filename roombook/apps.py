from django.apps import AppConfig
from django.conf import settings


class RoombookConfig(AppConfig):
    name = "roombook"

    def ready(self) -> None:
        from roombook import checks  # noqa: F401 (registers the system checks)

        if settings.SENTRY_DSN:
            # Loading the SDK takes a third of a second.
            from roombook import error_reports

            error_reports.start(settings.SENTRY_DSN)
