"""The contract's AddressInfo: of centers in responses, of payment cards in both directions."""

from roombook.api.fields import BooleanField, DoubleField, TextField
from roombook.api.serializers import ContractSerializer


class AddressInfo(ContractSerializer):
    """A postal address of a center or a payment card."""

    Street1 = TextField()
    Street2 = TextField()
    Street3 = TextField()
    City = TextField()
    State = TextField(help_text="Of a center: its code where letters carry it (`CO`).")
    PostalCode = TextField()
    Country = TextField(help_text="Of a center: two letters (`US`).")
    Latitude = DoubleField(min_value=-90, max_value=90)
    Longitude = DoubleField(min_value=-180, max_value=180)
    TimeZoneId = TextField(help_text="As the IANA database has it: `America/Denver`.")
    # Derived from the other fields: validated in requests, but not stored.
    HasStreet2 = BooleanField(help_text="Responses only.")
    CityStatePostalCode = TextField(help_text="Responses only: `Denver, CO 80202`.")
