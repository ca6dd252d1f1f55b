"""Erasures of accounts (B22)."""

from django.conf import settings
from django.db import models

# The domain is reserved: no e-mail can be sent there (RFC 2606).
PSEUDONYM_DOMAIN = "erased.invalid"
# Customers without an e-mail address have one here, because addresses are unique. Nobody reads it.
NO_ADDRESS_DOMAIN = "no-address.invalid"
# The ends of addresses that nobody reads.
UNREAD = (f"@{PSEUDONYM_DOMAIN}", f"@{NO_ADDRESS_DOMAIN}")


class AccountErasure(models.Model):
    """An account that was erased, and what is left to do outside the database.

    It is unfinished until the picture and what gateways store are deleted, and until every request
    that began before it has ended.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="erasure"
    )
    begun_at = models.DateTimeField()
    picture = models.CharField(max_length=255, blank=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            # Few erasures are unfinished.
            models.Index(
                fields=["begun_at"],
                condition=models.Q(finished_at__isnull=True),
                name="account_erasure_unfinished",
            ),
        ]

    def __str__(self) -> str:
        return f"erasure of account {self.pk}"
