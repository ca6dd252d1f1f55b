"""Centers in the back office."""

from centers.admin import catalog, center, closures, rates, rooms, terms  # noqa: F401 (they register)
