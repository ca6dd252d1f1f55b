"""Services as a table."""

from typing import ClassVar

from centers.models import Service
from centers.resources.common import PricedResource


class ServiceResource(PricedResource):
    """Services."""

    name: ClassVar = "services"
    one: ClassVar = "service"
    is_service: ClassVar = True

    class Meta:
        model = Service
        fields = (
            *("id", "center_id", "center", "name", "type", "description", "rate", "is_active"),
            *("bill_at_center", "minimum_booking", "needs_duration", "needs_quantity", "position"),
        )
