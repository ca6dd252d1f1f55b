"""What a file, and the check of it, may cost."""

import time

from roombook.backoffice.spreadsheets import InvalidFile

MAX_BYTES = 10 * 2**20
MAX_ROWS = 20_000
# Including empty lines, and lines that a workbook leaves out.
MAX_LINES = 100_000
MAX_COLUMNS = 256
# How long a file may be read and compared with the database: less than proxies and gunicorn wait.
CHECK_SECONDS = 45.0
TOO_MANY_LINES = (
    f"There are more than {MAX_LINES:,} lines, empty ones included:"
    " remove those, or split the file."
)


class Deadline:
    """Refuses to go on when the time is over."""

    def __init__(self, seconds: float) -> None:
        self.ends_at = time.monotonic() + seconds

    def check(self) -> None:
        """Raises InvalidFile."""
        if time.monotonic() > self.ends_at:
            raise InvalidFile("Checking this file takes too long: split it.")
