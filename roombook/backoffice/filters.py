"""Filters of the back office's lists that bear any size of table, and any nonsense."""

from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.contrib.filters.forms import AutocompleteDropdownForm

from roombook.backoffice.model_admin import SearchBox


class ByTypingForm(AutocompleteDropdownForm):
    widget = SearchBox


class ByTyping(AutocompleteSelectFilter):
    """By a row that is found by typing: nothing is read to choose from."""

    form_class = ByTypingForm
