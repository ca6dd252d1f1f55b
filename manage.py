#!/usr/bin/env python3
"""The command line: `manage.py help` lists all commands."""

import sys

from django.core.management import execute_from_command_line

from roombook import startup


def main() -> None:
    """Run one command with the settings of roombook."""
    startup.load_settings()
    startup.run_command(lambda: execute_from_command_line(sys.argv))


if __name__ == "__main__":
    main()
