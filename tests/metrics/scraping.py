"""Reads the metrics of a running service."""

import re
import time
import urllib.error
import urllib.request

DEADLINE_SECONDS = 120


def scrape(port):
    """Return the samples by their names with labels."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as response:
                text = response.read().decode()
            return dict(re.findall(r"^(roombook_\S*(?:{.*})?) (\S+)$", text, re.M))
        except urllib.error.URLError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
