from django.apps import AppConfig


class RoombookConfig(AppConfig):
    name = "roombook"

    def ready(self) -> None:
        """Make the system checks known."""
        from roombook import checks, history  # noqa: F401  (checks register themselves)

        history.connect()
