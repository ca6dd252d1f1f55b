"""Who does something, and when."""

import datetime as dt
from dataclasses import dataclass

from accounts.models import User


@dataclass(frozen=True, slots=True)
class Act:
    """What a customer, a member of staff or a job does: `user` is None for a job."""

    user: User | None
    now: dt.datetime
    is_staff: bool = False

    @property
    def staff(self) -> User:
        """The member of staff who does it: nobody else can."""
        assert self.is_staff
        assert self.user is not None
        return self.user

    @property
    def customer(self) -> User | None:
        """The customer who does it; None for staff, who act for any customer, and for a job."""
        return None if self.is_staff else self.user
