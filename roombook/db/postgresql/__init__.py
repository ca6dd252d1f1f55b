"""Django's PostgreSQL backend with cheaper connections. Django imports its module `base`."""
