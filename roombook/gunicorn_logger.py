"""Gunicorn's own log, without card numbers (B8.2) and secret paths.

It quotes requests that it cannot read.
"""

import logging

from gunicorn.config import Config
from gunicorn.glogging import Logger

from roombook.secret_paths import mask_line


class MaskingFormatter(logging.Formatter):
    """Formats records as given, and masks card numbers and secret paths."""

    def format(self, record: logging.LogRecord) -> str:
        return mask_line(super().format(record))


class MaskingLogger(Logger):
    """Gunicorn's logger. deploy/gunicorn.conf.py names it."""

    def setup(self, cfg: Config) -> None:
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(MaskingFormatter(self.error_fmt, self.datefmt))
