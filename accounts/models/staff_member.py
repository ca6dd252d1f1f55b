"""Accounts of staff, which the back office lists apart from those of customers."""

from accounts.models.user import User


class StaffMember(User):
    """An account whose owner may sign in to the back office. Only administrators see these."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = "member of staff"
        verbose_name_plural = "staff"
