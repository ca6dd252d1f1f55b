"""The text in which accounts are searched; see accounts/user_search.py."""

from typing import TYPE_CHECKING

from django.db import models

from accounts.validators import get_digits
from roombook.places import fold_text

if TYPE_CHECKING:
    from accounts.models.user import User

NAME_FIELDS = ("first_name", "last_name", "company_name")
SEARCHED_FIELDS = (*NAME_FIELDS, "email", "phone_number")
# Between the names and what follows: no word that is searched for contains it.
END_OF_NAMES = "\n"


def build_search_text(user: "User") -> str:
    """The names, a line break, the e-mail address and the digits of the phone number.

    Without accents and upper case. Each word follows a space, so that its beginning can be found.
    """
    names = fold_text(" ".join(getattr(user, field) for field in NAME_FIELDS))
    return f" {names}{END_OF_NAMES} {fold_text(user.email)} {get_digits(user.phone_number)}"


class SearchTextField(models.TextField):
    """Computed before the account is saved. Migrations name this class: keep it in this module."""

    def pre_save(self, model_instance: models.Model, add: bool) -> str:  # noqa: FBT001
        text = build_search_text(model_instance)  # type: ignore[arg-type]
        setattr(model_instance, self.attname, text)
        return text
