"""The operations on centers."""

import datetime as dt
from typing import Any

from accounts.models import User
from centers import rates, records, search
from centers.geo import Coordinates
from centers.models import Center, Favorite
from centers.requested_span import resolve_period
from centers.rooms import get_room
from centers.search import AreaType
from centers.serializers import (
    CenterInfo,
    CenterSearchResult,
    DayPricesInfo,
    SearchFilterCriteria,
    build_filters,
)
from roombook.api.fields import (
    BooleanField,
    CenterDayOrTimeField,
    ChoiceField,
    DoubleField,
    IdField,
    IntegerField,
    TextField,
)
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer
from roombook.errors import InvalidRequest, NotFound, RateNotConfigured


class SearchLocations(Operation):
    """Find centers around a place, by words and by filters on their rooms.

    A center must match the place, the Query and the Filters; without any of them, all centers are
    found. Nearest first, if a place is given. There are no pages: narrow the search.
    """

    csv_rows_field = "Centers"
    example = {"Query": "Denver, CO", "Filters": {"CapacityLow": 6, "CapacityHigh": 8}}

    class Input(ContractSerializer):
        Latitude = DoubleField(
            min_value=-90,
            max_value=90,
            help_text="Of the place, in degrees; together with Longitude.",
        )
        Longitude = DoubleField(
            min_value=-180,
            max_value=180,
            help_text="Of the place, in degrees; together with Latitude.",
        )
        RadiusInMiles = IntegerField(
            min_value=1,
            max_value=500,
            help_text="How far from the place a center may be. With a place and without Query, 25"
            " if absent; with a Query, no bound if absent.",
        )
        Query = TextField(
            max_length=300,
            help_text="At most 30 words, each of which occurs in the center's name, address,"
            " neighborhood or landmarks.",
        )
        Filters = SearchFilterCriteria(help_text="What the rooms and the center must have.")

    Output = CenterSearchResult

    def perform(
        self,
        user: User,
        *,
        latitude: float | None = None,
        longitude: float | None = None,
        radius_in_miles: int | None = None,
        query: str = "",
        filters: dict[str, Any] | None = None,
    ) -> search.SearchResult:
        return search.search_locations(
            user,
            coordinates=build_place(latitude, longitude),
            radius_in_miles=radius_in_miles,
            query=query,
            filters=build_filters(filters or {}),
        )


class CityCenters(Operation):
    """List the centers of a state, country, city, neighborhood or postal code.

    Area or CityName is required. An unknown place has no centers: the list is empty.
    """

    csv_rows_field = "Centers"
    example = {"AreaType": "State", "Area": "Colorado"}

    class Input(ContractSerializer):
        AreaType = ChoiceField(AreaType, contract_type="AreaTypes", help_text="What Area names.")
        Area = TextField(help_text="The name or code of the area: `Colorado`, `CO`, `80202`.")
        CityName = TextField(help_text="Only centers of the city with this name.")
        Filters = SearchFilterCriteria(help_text="What the rooms and the center must have.")

    Output = CenterSearchResult

    def perform(
        self,
        user: User,
        *,
        area_type: str = AreaType.STATE,
        area: str = "",
        city_name: str = "",
        filters: dict[str, Any] | None = None,
    ) -> search.SearchResult:
        return search.list_city_centers(
            user,
            area_type=AreaType(area_type),
            area=area,
            city_name=city_name,
            filters=build_filters(filters or {}),
        )


class UpdateFavorite(Operation):
    """Add a center to the account's favorites, or remove it. Repeating it is harmless."""

    errors = (NotFound,)
    example = {"CenterId": 1, "IsFavorite": True}

    class Input(ContractSerializer):
        CenterId = IdField(required=True, help_text="The center.")
        IsFavorite = BooleanField(required=True, help_text="`true` adds it, `false` removes it.")

    class Output(ContractSerializer):
        UpdatedCenter = CenterInfo(help_text="The center with the change.")

    def perform(self, user: User, *, center_id: int, is_favorite: bool) -> dict[str, object]:
        center = Center.objects.filter(pk=center_id, is_active=True).first()
        if center is None:
            raise NotFound
        Favorite.objects.set_favorite(user, center, is_favorite=is_favorite)
        return {"updated_center": records.get_center(center_id, user)}


class ListPrices(Operation):
    """List the prices of a room by day and time: its standard prices, and its special price lists.

    Whole local days, all of those that From to To touches.
    """

    csv_rows_field = "Days.Prices"
    errors = (NotFound, RateNotConfigured)
    example = {"RoomId": 2, "From": "2027-03-01", "To": "2027-03-08"}

    class Input(ContractSerializer):
        RoomId = IdField(required=True, help_text="The room.")
        From = CenterDayOrTimeField(
            required=True,
            help_text="Without an offset, the center's local time; a date alone is its midnight.",
        )
        To = CenterDayOrTimeField(required=True, help_text="The same; at most 31 days after From.")

    class Output(ContractSerializer):
        Days = DayPricesInfo(many=True, help_text="In order.")

    def perform(
        self, user: User, *, room_id: int, to: dt.datetime, **fields: dt.datetime
    ) -> dict[str, object]:
        room = get_room(room_id)
        if not (room.is_active and room.center.is_active):
            raise NotFound
        # `from` is a keyword of Python, so it cannot be a parameter.
        period = resolve_period(room.center.zone, fields["from"], to)
        return {"days": list(rates.list_prices(room.rate, period, room.center.zone))}


def build_place(latitude: float | None, longitude: float | None) -> Coordinates | None:
    """Return the point that the client searches around; it sends both numbers or neither."""
    if latitude is None and longitude is None:
        return None
    if latitude is None:
        raise InvalidRequest({"latitude": "Latitude and Longitude come together."})
    if longitude is None:
        raise InvalidRequest({"longitude": "Latitude and Longitude come together."})
    return Coordinates(latitude, longitude)
