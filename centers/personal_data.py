"""The personal data of favorites (B22.10)."""

from django.db.models import Q

from centers.models import Favorite
from roombook.personal_data import delete_rows, register

register(
    Favorite,
    "user center",
    purpose="The customer's favorite centers.",
    kept="Until the customer removes it.",
    at_erasure="Deleted.",
    erase=delete_rows(Favorite, lambda account: Q(user=account.pk)),
)
