"""Columns for text that people write. They clean it whatever writes it: forms, API, imports."""

from typing import Any

from django.db import models

from roombook.texts import clean_line, clean_text


class CleanedMixin(models.Field):
    """Cleans a text when it is validated, saved and looked up."""

    def clean_value(self, text: str) -> str:
        raise NotImplementedError

    def to_python(self, value: Any) -> Any:
        """Django calls this to validate, to save and to look up a value."""
        return self.clean_value(value) if isinstance(value, str) else super().to_python(value)

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:  # noqa: FBT001
        value = super().pre_save(model_instance, add)
        if isinstance(value, str):
            # The instance has what is stored.
            value = self.clean_value(value)
            setattr(model_instance, self.attname, value)
        return value

    def deconstruct(self) -> Any:
        """For migrations it is Django's own field: the columns are the same."""
        name, _, args, kwargs = super().deconstruct()
        own = next(each for each in type(self).__mro__ if each.__module__.startswith("django."))
        return name, f"django.db.models.{own.__name__}", args, kwargs


class LineField(CleanedMixin, models.CharField):
    """A text of one line, such as a name."""

    def clean_value(self, text: str) -> str:
        return clean_line(text)


class ParagraphsField(CleanedMixin, models.TextField):
    """A text that may have several lines."""

    def clean_value(self, text: str) -> str:
        return clean_text(text)
