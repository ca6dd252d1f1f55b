from argparse import ArgumentParser

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from centers.models import Center
from reservations.models import WebhookEndpoint
from roombook.public_http import validate_public_server


class Command(BaseCommand):
    help = (
        "Create a webhook for an integrator, for one center or for all, and show its secret and its"
        " access key."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("description")
        parser.add_argument("url", help="The https:// address of the receiver.")
        parser.add_argument(
            "--center", type=int, metavar="ID", help="Report this center only. Default: all."
        )

    def handle(self, *, description: str, url: str, center: int | None, **options: object) -> None:
        if center is not None and not Center.objects.filter(pk=center).exists():
            raise CommandError(f"There is no center {center}.")
        endpoint = WebhookEndpoint(
            description=description, url=url, center_id=center, created_at=timezone.now()
        )
        try:
            endpoint.full_clean()
            validate_public_server(url)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        endpoint.save()
        access_key = endpoint.issue_access_key()
        self.stdout.write(
            f"WebhookId: {endpoint.pk}\nSecret: {endpoint.secret}\nAccess key: {access_key}"
        )
