"""The personal data of favorites (B22.10)."""

from centers.models import Favorite
from roombook.personal_data import register_owned

register_owned(Favorite, "user center")
