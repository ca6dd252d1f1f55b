"""The reference: the same responses from a bare WSGI function, psycopg2 and hand-written SQL.

It runs the same queries with the same locks. Rules that need no framework (prices, opening hours,
descriptions of amounts) are roombook's own functions.
"""
