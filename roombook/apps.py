from django.apps import AppConfig


class RoombookConfig(AppConfig):
    name = "roombook"

    def ready(self) -> None:
        """Make the system checks known."""
        from roombook import checks  # noqa: F401  (they register themselves)
