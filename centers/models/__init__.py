from centers.models.catalog import Neighborhood, ResourceType
from centers.models.center import Center, CenterImage, Favorite, Landmark
from centers.models.price_list import PriceList
from centers.models.room import MeetingRoom, Rate, Service
from centers.models.schedule import Closure, OpeningHours
from centers.models.terms import Terms

__all__ = [
    "Center",
    "CenterImage",
    "Closure",
    "Favorite",
    "Landmark",
    "MeetingRoom",
    "Neighborhood",
    "OpeningHours",
    "PriceList",
    "Rate",
    "ResourceType",
    "Service",
    "Terms",
]
