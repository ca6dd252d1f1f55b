"""Traces, as docs/metrics.md describes them, have no address that contains a secret."""

import re
from pathlib import Path

from roombook.secret_paths import SECRET_PATHS

PAGE = Path(__file__).parents[2] / "docs/metrics.md"


def test_documented_exclusions_cover_all_paths_with_secrets_and_the_back_office():
    [excluded] = re.findall(r"OTEL_PYTHON_DJANGO_EXCLUDED_URLS=(\S+)", PAGE.read_text())
    # OpenTelemetry looks for each of them anywhere in an address.
    pattern = excluded.replace(",", "|")

    assert [path for path in (*SECRET_PATHS, "/admin/") if not re.search(pattern, path)] == []
    assert not re.search(pattern, "/api/reservations/checkout")
