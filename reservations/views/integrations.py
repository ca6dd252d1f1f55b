"""The operation of integrators, who have no account."""

import datetime as dt

from django.utils import timezone

from reservations.integrations import changes
from reservations.serializers import ReservationChangeInfo
from roombook.api.fields import BooleanField, DateTimeField, IdField, IntegerField, TextField
from roombook.api.operations import Operation
from roombook.api.serializers import ContractSerializer
from roombook.errors import InvalidCredentials

EXAMPLE_ACCESS_KEY = "the access key of the webhook"


class ListReservationChanges(Operation):
    """List the changes that a webhook reports, also those that its receiver missed.

    For integrators, who have no account. Changes are listed in the order in which they were
    published, each exactly once, for 30 days. Wrong credentials are `InvalidCredentials`.
    """

    requires_token = False
    errors = (InvalidCredentials,)
    example = {"WebhookId": 1, "AccessKey": EXAMPLE_ACCESS_KEY}
    csv_rows_field = "Changes"

    class Input(ContractSerializer):
        WebhookId = IdField(required=True, help_text="The number of the webhook.")
        AccessKey = TextField(
            required=True,
            allow_blank=False,
            max_length=100,
            help_text="Its access key, which staff create in the back office.",
        )
        Since = DateTimeField(
            help_text="Changes published since then, at most 30 days ago, which is the default;"
            " not used with a Cursor."
        )
        PageSize = IntegerField(
            min_value=1,
            max_value=changes.MAX_PAGE_SIZE,
            help_text=f"The maximum number of changes; default: {changes.MAX_PAGE_SIZE}.",
        )
        Cursor = TextField(
            max_length=255, help_text="The NextCursor of the previous response of this webhook."
        )

    class Output(ContractSerializer):
        Changes = ReservationChangeInfo(many=True, help_text="The changes, oldest first.")
        NextCursor = TextField(help_text="Continues after these changes, for 30 days.")
        HasMore = BooleanField(help_text="Whether there are more changes already.")

    def perform(
        self,
        user: None,
        *,
        webhook_id: int,
        access_key: str,
        since: dt.datetime | None = None,
        page_size: int = changes.MAX_PAGE_SIZE,
        cursor: str = "",
    ) -> changes.ChangesPage:
        endpoint = changes.authenticate(webhook_id, access_key)
        return changes.list_changes(
            endpoint, since=since, cursor=cursor, page_size=page_size, now=timezone.now()
        )
