from django.apps import AppConfig


class ImportsConfig(AppConfig):
    name = "roombook.imports"
    label = "imports"
