"""The WSGI application that gunicorn serves."""

import django
from django.urls import reverse

from roombook import startup
from roombook.handler import RoombookWSGIHandler

startup.load_settings()
django.setup(set_prefix=False)
# A WSGI server runs no system checks of its own.
startup.require_valid_settings()
startup.require_usable_database()

# Load the URL patterns now, once before gunicorn forks its workers, and not at the first request.
reverse("admin:index")

application = RoombookWSGIHandler()
