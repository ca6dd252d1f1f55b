"""Generates data for measurements: `python -m tests.bench.generate`, or as part of `make bench`.

It writes rows directly instead of calling the domain's functions, which is faster. Its tests check
them with verify_integrity, and their prices come from reservations.pricing.quote.
"""
