"""Faults on purpose, against the deployed service: rivals, killed workers, a database that
restarts, a gateway that hangs, clocks that jump; and after each, whether the books are right.

`make test` runs the quick form, `make faults` the long one with a table of figures.
"""
