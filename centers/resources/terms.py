"""Terms of cancellation as a table."""

from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from import_export.fields import Field

from centers.models import Terms
from centers.resources.common import NamedResource
from roombook.imports.widgets import TextWidget


class StepsCellWidget(TextWidget):
    help_text = "168: 100; 48: 50 (hours before the start: percent that comes back)"

    def parse(self, text: str, **kwargs: object) -> Any:
        try:
            return Terms._meta.get_field("steps").to_python(text)
        except ValidationError as error:
            raise ValueError(error.message) from error


class TermsResource(NamedResource[Terms]):
    """Terms of cancellation."""

    name: ClassVar = "terms"
    singular: ClassVar = "set of terms"

    steps = Field("steps", widget=StepsCellWidget())

    class Meta:
        model = Terms
        fields = (
            *("id", "center_id", "center", "name", "steps", "grace_minutes", "no_show_percent"),
            "change_hours",
        )
