from django.apps import AppConfig


class RoombookConfig(AppConfig):
    name = "roombook"

    def ready(self) -> None:
        from roombook import checks  # noqa: F401 (registers the system checks)
