"""Runs `send_webhooks` with a mistake, for the negative control: events count as delivered before
they are sent."""

import datetime as dt
import os
from typing import Any

import django
from django.core.management import call_command


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "roombook.settings"
    django.setup()

    from reservations.models import WebhookDelivery
    from roombook.deliveries import DeliveryState

    def lease(
        delivery: WebhookDelivery, rows: Any, *, period: dt.timedelta, now: dt.datetime
    ) -> bool:
        delivered = rows.filter(pk=delivery.pk).update(
            state=DeliveryState.SENT, attempts=1, next_attempt_at=None, sent_at=now
        )
        return bool(delivered)

    WebhookDelivery.lease = lease
    call_command("send_webhooks")


if __name__ == "__main__":
    main()
