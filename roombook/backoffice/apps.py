from django.apps import AppConfig


class BackofficeConfig(AppConfig):
    name = "roombook.backoffice"
    verbose_name = "back office"
