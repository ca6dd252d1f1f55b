from django.apps import AppConfig


class RoombookConfig(AppConfig):
    name = "roombook"

    def ready(self) -> None:
        """Make the system checks known."""
        from roombook import checks  # noqa: F401  (the checks register themselves)
        from roombook.backoffice import audit_log

        audit_log.connect_signals()
