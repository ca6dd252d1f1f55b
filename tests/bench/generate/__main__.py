"""`python -m tests.bench.generate --help`"""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "roombook.settings")
django.setup()

from tests.bench.generate.command import main  # noqa: E402 (it imports models)

main()
