"""Helpers for tests of the pages of centers."""

from datetime import UTC, datetime

from django.urls import reverse

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def url(model, page, *args):
    return reverse(f"admin:centers_{model}_{page}", args=args)
