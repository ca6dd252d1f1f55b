"""Compares the speed of roombook with hand-written SQL without a framework: `make bench`."""
