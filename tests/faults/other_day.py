"""A pytest plugin: the tests run as if they had begun at the time in TEST_DAY (test_days.py)."""

import datetime as dt
import os

import time_machine

# It runs on until pytest ends. Tests may still stop the clock or move it.
time_machine.travel(dt.datetime.fromisoformat(os.environ["TEST_DAY"])).start()
