from django.core.management.base import CommandError
from django.utils import timezone

from reservations.integrations.events import prune_events, publish_events
from reservations.integrations.sending import send_due_deliveries
from reservations.models import WebhookDelivery
from roombook.deliveries import DeliveryState
from roombook.jobs import RegularJob


class Command(RegularJob):
    help = (
        "Send the events of reservations to the webhooks of integrators; a failed one is retried"
        " for three days. Events older than 30 days are deleted. Exits with 1 if a delivery has"
        " failed for good; run it every minute."
    )

    def handle(self, *args: object, **options: object) -> None:
        published = publish_events(now=timezone.now())
        states: list[DeliveryState] = []
        for delivery in send_due_deliveries(clock=timezone.now):
            states.append(DeliveryState(delivery.state))
            self.stdout.write(f"{delivery}: {describe_delivery(delivery)}")
        prune_events(now=timezone.now())
        sent, failed = states.count(DeliveryState.SENT), states.count(DeliveryState.FAILED)
        waiting = WebhookDelivery.objects.waiting().to_active_endpoints().count()
        self.stdout.write(
            f"{published} published, {sent} delivered, {waiting} waiting, {failed} failed"
        )
        if failed:
            raise CommandError(
                "Some webhooks failed: see them in the back office, under Webhook deliveries.",
                returncode=1,
            )


def describe_delivery(delivery: WebhookDelivery) -> str:
    answer = " ".join(filter(None, (str(delivery.status_code or ""), delivery.response)))
    if delivery.state == DeliveryState.WAITING:
        return f"next attempt at {delivery.next_attempt_at:%Y-%m-%d %H:%M} UTC; {answer}"
    return f"{delivery.state} {answer}".strip()
