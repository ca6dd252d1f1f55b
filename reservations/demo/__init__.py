"""The demo data (B20): files in data/, loaded by the importer of the back office where it can."""
