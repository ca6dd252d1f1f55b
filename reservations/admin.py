"""Where Django looks for an app's admin. The pages of staff are in reservations/desk."""

import reservations.desk  # noqa: F401
