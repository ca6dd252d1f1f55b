"""The reference: the same responses from a bare WSGI function, psycopg2 and hand-written SQL.

It is an upper bound for the speed of Django and DRF. It runs the same queries on the same tables
with the same locks, and returns the same JSON; `make bench` compares the responses before it
measures. Rules that need no framework (prices, opening hours, descriptions of amounts) are
roombook's own functions.
"""
