"""Django's PostgreSQL backend, with connections that are asked less; Django looks for `base`."""
