"""Postal addresses: the columns that centers and payment cards share."""

from typing import TYPE_CHECKING, Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from roombook.texts import LineField


class AddressProperties:
    """The derived properties of an address that the API returns."""

    __slots__ = ()

    if TYPE_CHECKING:
        street2: Any
        city: Any
        state: Any
        postal_code: Any

    @property
    def has_street2(self) -> bool:
        return bool(self.street2)

    @property
    def city_state_postal_code(self) -> str:
        return format_city_line(self.city, self.state, self.postal_code)


class Address(AddressProperties, models.Model):
    """An address. All columns are optional; models that inherit them require what they need."""

    street1 = LineField("street", max_length=255, blank=True)
    street2 = LineField("street, second line", max_length=255, blank=True)
    street3 = LineField("street, third line", max_length=255, blank=True)
    city = LineField(max_length=255, blank=True)
    state = LineField("state or province", max_length=255, blank=True)
    postal_code = LineField(max_length=255, blank=True)
    country = LineField(max_length=255, blank=True)
    latitude = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(-90), MaxValueValidator(90)]
    )
    longitude = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(-180), MaxValueValidator(180)]
    )
    time_zone_id = models.CharField("time zone", max_length=255, blank=True)

    class Meta:
        abstract = True


def format_city_line(city: str, state: str, postal_code: str) -> str:
    """The last line of a postal address, without missing parts: `Denver, CO 80202`."""
    region = " ".join(part for part in (state, postal_code) if part)
    return ", ".join(part for part in (city, region) if part)


ADDRESS_FIELDS = tuple(field.name for field in Address._meta.local_fields)
POSTAL_FIELDS = (*("street1", "street2", "street3", "city", "state", "postal_code", "country"),)
