"""Postal addresses: the columns that centers and payment cards share."""

from typing import TYPE_CHECKING, Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models


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

    street1 = models.CharField("street", max_length=255, blank=True)
    street2 = models.CharField("street, second line", max_length=255, blank=True)
    street3 = models.CharField("street, third line", max_length=255, blank=True)
    city = models.CharField(max_length=255, blank=True)
    state = models.CharField("state or province", max_length=255, blank=True)
    postal_code = models.CharField(max_length=255, blank=True)
    country = models.CharField(max_length=255, blank=True)
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
