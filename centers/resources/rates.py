"""Prices as a table."""

from collections.abc import Iterator
from typing import ClassVar

from centers.models import Rate
from centers.resources.common import CenterChildResource
from roombook.imports.plan import Checked


class RateResource(CenterChildResource):
    """Prices."""

    name: ClassVar = "rates"
    one: ClassVar = "rate"

    class Meta:
        model = Rate
        fields = (
            *("id", "center_id", "center", "name", "is_flat_rate", "flat_rate", "hourly"),
            *("half_day", "full_day", "setup_fee", "bill_in_blocks", "description"),
        )

    def notes(self, row: Checked) -> Iterator[tuple[str, str]]:
        for name in ("flat_rate", "hourly", "half_day", "full_day"):
            if name in row.changes and getattr(row.instance, name) == 0:
                yield name, "This makes it free. An empty cell does not offer it."
