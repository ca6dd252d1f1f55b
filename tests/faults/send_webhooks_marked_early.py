"""Runs `send_webhooks` with a mistake, for the negative control: events count as delivered before
they are sent."""

import datetime as dt
import os

import django
from django.core.management import call_command


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "roombook.settings"
    django.setup()

    from reservations.models import WebhookDelivery
    from reservations.models.webhooks import DeliveryState
    from reservations.webhooks import sending

    def claim(delivery: WebhookDelivery, now: dt.datetime) -> bool:
        rows = WebhookDelivery.objects.waiting().filter(pk=delivery.pk)
        delivered = rows.update(
            state=DeliveryState.DELIVERED, attempts=1, next_attempt_at=None, delivered_at=now
        )
        return bool(delivered)

    sending._claim = claim
    call_command("send_webhooks")


if __name__ == "__main__":
    main()
