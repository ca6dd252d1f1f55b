"""The password hasher."""

from django.contrib.auth.hashers import Argon2PasswordHasher


class Argon2Hasher(Argon2PasswordHasher):
    """Argon2 with the parameters that OWASP recommends.

    Django's own parameters take 100 MiB and a quarter of a second per sign-in, so that a few dozen
    concurrent sign-ins would exhaust a small server's memory.
    """

    time_cost = 2
    memory_cost = 19456
    parallelism = 1
