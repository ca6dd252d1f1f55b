from centers.models.catalog import Neighborhood, ResourceType
from centers.models.center import Center, CenterImage, Closure, Favorite, Landmark, OpeningHours
from centers.models.room import MeetingRoom, Rate, Service

__all__ = [
    "Center",
    "CenterImage",
    "Closure",
    "Favorite",
    "Landmark",
    "MeetingRoom",
    "Neighborhood",
    "OpeningHours",
    "Rate",
    "ResourceType",
    "Service",
]
