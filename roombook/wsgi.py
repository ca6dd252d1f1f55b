"""The service as gunicorn starts it."""

import os

import django
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.urls import reverse

from roombook.handler import RoombookWSGIHandler

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "roombook.settings")
django.setup(set_prefix=False)

# gunicorn runs no system checks of its own, and a wrong setting must stop the start.
if problems := [problem for problem in run_checks(tags=["roombook"]) if problem.is_serious()]:
    raise ImproperlyConfigured("\n".join(str(problem) for problem in problems))

# Here and not at the first request, so that it is done once, before there are workers: all patterns
# are read, and found by their names.
reverse("admin:index")

application = RoombookWSGIHandler()
