"""The forms of a rate. A price of 0 must be confirmed, because it makes bookings free."""

from typing import Any

from django import forms

from centers.models import Rate
from centers.rates import PRICE_FIELDS
from roombook.backoffice.concurrent_edits import ChangedFieldsForm


class RatePricesForm(ChangedFieldsForm):
    """The prices of a rate as they were entered."""

    class Meta:
        model = Rate
        fields = (
            *("name", "is_flat_rate", "flat_rate", "hourly", "half_day", "full_day"),
            *("setup_fee", "bill_in_blocks", "description"),
        )

    def get_new_zero_prices(self) -> list[str]:
        """The prices that this form changes to 0."""
        names = (name for fields in PRICE_FIELDS.values() for name in fields)
        return [
            name for name in names if self.cleaned_data.get(name) == 0 and name in self.changed_data
        ]


class RateForm(RatePricesForm):
    """A rate on its own page or on that of its center."""

    is_zero_price_allowed = forms.BooleanField(
        required=False,
        label="Allow a price of 0",
        help_text="Select this to make bookings free. To not offer a price, leave it empty.",
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        zero_prices = self.get_new_zero_prices()
        if zero_prices and not cleaned.get("is_zero_price_allowed"):
            for name in zero_prices:
                self.add_error(
                    name, "This makes bookings free. Leave the price empty to not offer it."
                )
            self.add_error("is_zero_price_allowed", "Select this if the price is really 0.")
        return cleaned


class RateListForm(RatePricesForm):
    """A rate in the list, which has no column to confirm a price of 0."""

    class Meta:
        # The list decides which columns are edited.
        model = Rate
        fields = "__all__"

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        for name in self.get_new_zero_prices():
            self.add_error(name, "This makes bookings free. Open the rate to confirm it.")
        return cleaned
