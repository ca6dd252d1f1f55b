"""Django's SQLite backend with private files. Django imports its module `base`."""
