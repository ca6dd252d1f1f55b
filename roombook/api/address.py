"""The contract's AddressInfo: of centers in responses, of payment cards both ways."""

from roombook.api.serializers import (
    BooleanField,
    ContractSerializer,
    DoubleField,
    TextField,
)


class AddressInfo(ContractSerializer):
    """A postal address; a row that is a `roombook.address.Address` is its own source.

    HasStreet2 and CityStatePostalCode are made of the others: coming in they are judged as any
    field is, and not kept.
    """

    Street1 = TextField()
    Street2 = TextField()
    Street3 = TextField()
    City = TextField()
    State = TextField()
    PostalCode = TextField()
    Country = TextField()
    Latitude = DoubleField(min_value=-90, max_value=90)
    Longitude = DoubleField(min_value=-180, max_value=180)
    TimeZoneId = TextField()
    HasStreet2 = BooleanField()
    CityStatePostalCode = TextField()
