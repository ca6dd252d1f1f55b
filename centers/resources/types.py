"""Types of rooms and services as a table. All centers share them."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

from django.db.models import Q

from accounts.resources import CenterScopedResource
from centers.models import ResourceType
from roombook.imports.resources import Cells
from roombook.texts import fold_name


class TypeResource(CenterScopedResource[ResourceType]):
    """Types of rooms and services."""

    name: ClassVar = "types"
    singular: ClassVar = "type"
    center_path: ClassVar = None
    key: ClassVar = ("name",)
    required_columns: ClassVar = (("name",),)
    example: ClassVar = {"name": "Meeting room"}

    class Meta:
        model = ResourceType
        fields = ("id", "name", "is_service", "position", "internal")

    def get_candidates(self, rows: Sequence[Cells]) -> Q:
        return Q()

    def get_key(self, instance: ResourceType) -> Hashable:
        return fold_name(instance.name)
