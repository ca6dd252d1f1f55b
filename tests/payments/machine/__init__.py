"""A state machine of hypothesis that pays for reservations, with every fault that we know of.

points.py       where a worker can die, be overtaken by another one, or get no answer
banks.py        what customers and their banks do at a gateway, and what money moved there
beginnings.py   what has happened when an example begins
base.py         requests, faults, the clock and counts, for all rules
setup_rules.py  the rules of payment setups
machine.py      the rules of checkouts, through the API
checks.py       what must hold after each rule, and after everything is settled
defects.py      planted defects, each of which the machine finds

test_crashes.py lets a worker die at each place of one request at a time.
"""
