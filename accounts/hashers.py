"""How passwords are hashed."""

from django.contrib.auth.hashers import Argon2PasswordHasher


class Argon2Hasher(Argon2PasswordHasher):
    """Argon2 at the cost that OWASP recommends.

    Django's own parameters take 100 MiB and a quarter second a sign-in, so that a few dozen
    sign-ins at once would fill a small server's memory.
    """

    time_cost = 2
    memory_cost = 19456
    parallelism = 1
