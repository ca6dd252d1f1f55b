"""List filters that work with tables of any size and ignore invalid values."""

from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.contrib.filters.forms import AutocompleteDropdownForm

from roombook.backoffice.widgets import AutocompleteWidget


class AutocompleteFilterForm(AutocompleteDropdownForm):
    widget = AutocompleteWidget


class AutocompleteFilter(AutocompleteSelectFilter):
    """Filters by one related row, which is selected by typing instead of from a long list."""

    form_class = AutocompleteFilterForm
