"""Filters of the back office's lists that bear any size of table, and any nonsense."""

from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.contrib.filters.forms import AutocompleteDropdownForm

from roombook.backoffice.model_admin import AutocompleteWidget


class AutocompleteFilterForm(AutocompleteDropdownForm):
    widget = AutocompleteWidget


class AutocompleteFilter(AutocompleteSelectFilter):
    """By a row that is found by typing: nothing is read to choose from."""

    form_class = AutocompleteFilterForm
