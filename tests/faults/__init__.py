"""Fault tests against the deployed service: competing requests, killed workers, restarts of the
database, a hanging gateway. After each, all data must be consistent.

`make test` runs the short form, `make faults` the long one.
"""
