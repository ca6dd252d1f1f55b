"""Terms of cancellation as a table."""

from typing import ClassVar

from import_export.fields import Field

from centers.models import Terms
from centers.resources.common import EXAMPLE_CENTER, ModelFieldWidget, NamedResource

STEPS = ModelFieldWidget(
    Terms._meta.get_field("steps"),
    "168: 100; 48: 50 (hours before the start: percent that comes back)",
)


class TermsResource(NamedResource[Terms]):
    """Terms of cancellation."""

    name: ClassVar = "terms"
    singular: ClassVar = "set of terms"
    example: ClassVar = {"center": EXAMPLE_CENTER, "name": "Flexible", "steps": "168: 100; 48: 50"}

    steps = Field("steps", widget=STEPS)

    class Meta:
        model = Terms
        fields = (
            *("id", "center_id", "center", "name", "steps", "grace_minutes", "no_show_percent"),
            "change_hours",
        )
