"""Accounts of staff, which the back office lists apart from those of customers."""

from typing import ClassVar

from django.db.models import QuerySet

from accounts.models.user import User, UserManager


class StaffManager(UserManager):
    def get_queryset(self) -> QuerySet[User]:
        return super().get_queryset().filter(is_staff=True)


class StaffMember(User):
    """An account whose owner may sign in to the back office. Only administrators see these."""

    objects: ClassVar[StaffManager] = StaffManager()

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = "member of staff"
        verbose_name_plural = "staff"
