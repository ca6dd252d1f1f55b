"""Which customers a member of staff may know (B18).

Where a role is at some centers only, its customers are those who have, or had, a reservation
there. To book for somebody who comes for the first time it takes their whole e-mail address.
"""

from typing import Any

from django.db.models import Q

from accounts import roles
from accounts.models import User

VIEW, ADD = "accounts.view_user", "accounts.add_user"
BOOK = "reservations.add_reservation"


def known_to(staff: Any, path: str = "pk") -> Q:
    """The accounts that staff may look at; `path` leads from a row to an account."""
    centers = roles.centers_of(staff, VIEW)
    if centers is None:
        return Q()
    # Through the relation, since accounts do not import what is built upon them.
    reservations = User._meta.get_field("reservations").related_model
    theirs = reservations._default_manager.filter(room__center__in=sorted(centers))  # type: ignore[union-attr]
    return Q(**{f"{path}__in": theirs.values("user")})


def may_be_known(staff: Any, customer: User) -> bool:
    return User.objects.filter(known_to(staff), pk=customer.pk).exists()
