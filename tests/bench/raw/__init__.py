"""The reference: the same answers from a bare WSGI function, psycopg2 and hand-written SQL.

What Django and DRF can at best approach. It asks the same questions of the same tables under the
same locks, and answers the same JSON; `make bench` compares the answers before it times them. Rules
that need no framework (prices, hours, words for money) are roombook's own: they cost both the same.

    gunicorn -k sync -w 2 tests.bench.raw.wsgi
"""
