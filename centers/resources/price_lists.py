"""Special price lists as a table, by the rate and the center that they belong to."""

import datetime as dt
from collections.abc import Hashable, Sequence
from decimal import Decimal
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.utils import timezone
from import_export.fields import Field

from centers.hours import MIDNIGHT
from centers.models import Center, PriceList, Rate
from centers.models.price_list import lock_rates, update_rates
from centers.price_lists import find_overlap
from centers.resources.centers import OpeningHoursWidget
from centers.resources.common import (
    EXAMPLE_RATE,
    ModelFieldWidget,
    NamedResource,
    name_at_center_widget,
)
from roombook.imports.files import ImportTable
from roombook.imports.resources import Cells
from roombook.imports.results import ImportResult, ImportRowResult
from roombook.imports.widgets import IntegerWidget, TextWidget
from roombook.texts import fold_name


class WeekdaysWidget(ModelFieldWidget):
    """Weekdays by their short names."""

    help_text = "mon, tue, sat; empty: every day"

    def render(self, value: Any, **kwargs: object) -> str:
        return (value or "").replace(",", ", ")


class HoursWidget(OpeningHoursWidget):
    """One span of a day; an empty cell means all of it."""

    help_text = "18:00-24:00; empty: the whole day"

    def parse(self, text: str, **kwargs: object) -> Any:
        if not text:
            return MIDNIGHT, MIDNIGHT
        starts, ends = self._parse(text)
        if ends <= starts and ends != MIDNIGHT:
            raise ValueError("It ends at 24:00 at the latest.")
        return starts, ends

    def render(self, value: Any, **kwargs: object) -> str:
        return "" if value == (MIDNIGHT, MIDNIGHT) else super().render([value])


class PriceListResource(NamedResource[PriceList]):
    """Special price lists."""

    name: ClassVar = "price-lists"
    singular: ClassVar = "price list"
    example: ClassVar = {
        "rate": EXAMPLE_RATE,
        "name": "Evening",
        "weekdays": "mon,tue,wed,thu,fri",
        "hours": (dt.time(18), MIDNIGHT),
        "hourly": Decimal(48),
    }
    center_path: ClassVar = "rate__center"
    related: ClassVar = ("rate__center",)
    key: ClassVar = ("rate", "name")
    required_columns: ClassVar = (("center_id", "center"), ("rate",), ("name",))
    derived_fields: ClassVar = ("starts", "ends")
    order: ClassVar = ("rate__center_id", "rate_id", "pk")

    center_id = Field(
        "rate__center_id", widget=IntegerWidget(help_text="the center's number"), readonly=True
    )
    center = Field(
        "rate__center__name",
        widget=TextWidget(help_text="the center's name; may replace the number"),
        readonly=True,
    )
    rate = Field("rate", widget=name_at_center_widget("rate"))
    weekdays = Field("weekdays", widget=WeekdaysWidget(PriceList._meta.get_field("weekdays")))
    hours = Field("hours", widget=HoursWidget())

    class Meta:
        model = PriceList
        fields = (
            *("id", "center_id", "center", "rate", "name", "weekdays", "hours", "valid_from"),
            *("valid_until", "is_yearly", "hourly", "half_day", "full_day"),
        )

    def load_references(self, rows: Sequence[Cells], stored: QuerySet[PriceList]) -> None:
        super().load_references(rows, stored)
        self.load_rows_at_center(Rate.objects.select_related("center"))

    def set_center(self, instance: PriceList, center: Center) -> None:
        """Its rate, which is found at this center, says where it belongs."""

    def get_center(self, instance: PriceList) -> Center:
        return instance.rate.center

    def get_center_id(self, instance: PriceList) -> int | None:
        if instance.rate_id:
            return instance.rate.center_id
        return self.center_of_row.pk if self.center_of_row else None

    def get_key(self, instance: PriceList) -> Hashable:
        return instance.rate_id, fold_name(instance.name)

    def get_title(self, instance: PriceList) -> str:
        return f"{instance.name}, {instance.rate.name}, {instance.rate.center.name}"

    def after_import(self, dataset: ImportTable, result: ImportResult, **kwargs: object) -> None:
        """Refuse lists that overlap when all rows are written: a file may move several of them."""
        super().after_import(dataset, result, **kwargs)
        if result.has_validation_errors() or result.has_errors():
            return
        rows = {row.instance.rate_id: row for row in result.rows}
        lists: dict[int, list[PriceList]] = {rate_id: [] for rate_id in rows}
        if self.is_locking:
            lock_rates(rows)
        for each in PriceList.objects.filter(rate__in=rows).order_by("pk"):
            lists[each.rate_id].append(each)
        today = timezone.localdate()  # noqa: TID251 (a preview has no `now`)
        for rate_id, row in rows.items():
            if overlap := find_overlap(lists[rate_id], today=today):
                self.refuse_row(result, row, "hours", [overlap])

    def save_related(self, rows: Sequence[ImportRowResult]) -> None:
        update_rates(
            {each.rate_id for row in rows for each in (row.instance, row.original) if each}
        )
