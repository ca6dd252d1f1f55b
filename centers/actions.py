"""What accounts do with centers."""

from typing import TYPE_CHECKING

from centers.models import Center, Favorite

if TYPE_CHECKING:
    from accounts.models import User


def set_favorite(user: "User", center: Center, *, is_favorite: bool) -> None:
    """Put a center among the account's favorites, or take it off; twice is harmless."""
    if is_favorite:
        Favorite.objects.get_or_create(user=user, center=center)
    else:
        Favorite.objects.filter(user=user, center=center).delete()
