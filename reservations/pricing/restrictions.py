"""What a promo code or an allowance is bound to: some centers or room types, or, with none, all."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.db import models


def is_permitted(bound_to: "models.Manager[models.Model]", pk: int) -> bool:
    """Whether the row is one of those bound to, or nothing is."""
    bound = {row.pk for row in bound_to.all()}
    return not bound or pk in bound
