"""The contract's AddressInfo: of centers in responses, of payment cards in both directions."""

from roombook.api.fields import BooleanField, DoubleField, TextField
from roombook.api.serializers import ContractSerializer


class AddressInfo(ContractSerializer):
    """A postal address of a center or a payment card."""

    Street1 = TextField(help_text="Street and number.")
    Street2 = TextField(help_text="Floor, suite or the like.")
    Street3 = TextField(help_text="Another line.")
    City = TextField(help_text="`Denver`.")
    State = TextField(help_text="Of a center: its code where letters carry it (`CO`).")
    PostalCode = TextField(help_text="`80202`.")
    Country = TextField(help_text="Of a center: two letters (`US`).")
    Latitude = DoubleField(min_value=-90, max_value=90, help_text="In degrees.")
    Longitude = DoubleField(min_value=-180, max_value=180, help_text="In degrees.")
    TimeZoneId = TextField(help_text="As the IANA database has it: `America/Denver`.")
    # Derived from the other fields: validated in requests, but not stored.
    HasStreet2 = BooleanField(help_text="Responses only: whether there is a Street2.")
    CityStatePostalCode = TextField(help_text="Responses only: `Denver, CO 80202`.")
