"""The permissions of each role, as the migration grants them."""

import importlib

MAY = importlib.import_module("reservations.migrations.0002_roles").ROLES
