"""A world in which every optional field has a value, and a valid request for each operation.

For tests of all operations. The clock is frozen at `NOW`. The room is in Denver.
"""

import datetime as dt
from decimal import Decimal
from typing import Any

from django.db import transaction

from accounts.act import Act
from accounts.models import CalendarAddress, CodePurpose, User
from centers import models as centers
from payments.gateways.sandbox_models import SandboxPayment
from payments.ledger import posting as ledger
from payments.ledger.accounts import EventKind
from reservations.booking import drafts
from reservations.integrations.events import publish_events
from reservations.models import (
    Allowance,
    LineItem,
    LineItemType,
    Partner,
    PromoCode,
    Reservation,
    Seller,
    WebhookEndpoint,
)
from reservations.models.history import record_changes
from reservations.models.status import Status
from tests import factories_centers as make
from tests.contract.schema import CONTRACT
from tests.contract.tables import OperationSchema
from tests.factories_full import make_full_center, make_full_room, make_full_service, make_full_user
from tests.factories_people import (
    CODE,
    PASSWORD,
    UserFactory,
    issue_token,
    make_email_code,
    make_entered_setup,
)
from tests.factories_reservations import PaymentFactory, ReservationFactory, update_promo_code
from tests.http import post

NOW = dt.datetime(2027, 3, 1, 15, tzinfo=dt.UTC)
# In the center's time zone.
START = dt.datetime.fromisoformat("2027-04-05T09:00:00")
END = dt.datetime.fromisoformat("2027-04-05T14:00:00")

OPERATIONS_BY_NAME = CONTRACT.operations
NEW_EMAIL = "augusta@example.com"
CARD_NUMBER, SECURITY_CODE = "4242424242424242", "737"

ADDRESS_INFO = {
    "Street1": "1600 Glenarm Place",
    "Street2": "Floor 2",
    "Street3": "Door C",
    "City": "Denver",
    "State": "CO",
    "PostalCode": "80202",
    "Country": "US",
    "Latitude": 39.7433,
    "Longitude": -104.9903,
    "TimeZoneId": "America/Denver",
    "HasStreet2": True,
    "CityStatePostalCode": "Denver, CO 80202",
}
PAYMENT_INFO = {
    "FirstName": "Ada",
    "LastName": "Lovelace",
    "CompanyName": "Engines Ltd",
    "CreditCardNumber": CARD_NUMBER,
    "SecurityCode": SECURITY_CODE,
    "ExpirationDate": "2031-02-28T00:00:00Z",
    "BillingAddress": ADDRESS_INFO,
}


class World:
    """Ada has everything. Bob is another customer, with a reservation and an allowance too."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.neighborhood = make.NeighborhoodFactory(
            original_name="Old Union",
            name="Union",
            custom_title="Around the station",
            landing_page_content="Trains.",
            coworking_landing_page_content="Desks.",
        )
        self.center = make_full_center(self.neighborhood)
        self.room = make_full_room(self.center)
        self.projector = make_full_service(self.center)
        self.coffee = make.ServiceFactory(center=self.center, name="Coffee", bill_at_center=True)
        self.other_center = make.make_center_with_room(name="Elsewhere", city="Boulder")
        self.other_service = make.ServiceFactory(center=self.other_center)
        self.promo = PromoCode.objects.create(code="SPRING", percent=Decimal(10))
        self.partner = Partner.objects.create(code="ACME", name="Acme")
        self.ada = make_full_user("ada@example.com")
        self.bob = make_full_user("bob@example.com")
        make.FavoriteFactory(user=self.ada, center=self.center)
        self.allowances = [
            Allowance.objects.create(
                user=user, description=description, hours=2, is_automatic=automatic
            )
            for user in (self.ada, self.bob)
            for description, automatic in (("Founder hours", True), ("Spare hours", False))
        ]
        self.reservation = self.draft(self.ada, self.room)
        self.bobs_reservation = self.draft(self.bob, self.other_center.rooms.get())
        self.webhook = self.make_webhook()
        # A second page for List reservations.
        in_june = dt.datetime(2027, 6, 1, 15, tzinfo=dt.UTC)
        self.paid = ReservationFactory(
            user=self.ada, room=self.room, start=in_june, booked_at=NOW, total_cost=75
        )
        self.pay(self.paid)
        self.waiting = self.make_waiting_reservation()
        self.token = issue_token(self.ada)
        CalendarAddress.get_secret(self.ada)
        make_email_code(CodePurpose.EMAIL_CHANGE, NEW_EMAIL, self.ada)
        make_email_code(CodePurpose.PASSWORD_RESET, self.ada.email, self.ada)
        self.payment_setup = make_entered_setup(self.ada, now=NOW)

    def make_waiting_reservation(self) -> Reservation:
        """A reservation whose payment the customer has to confirm at the bank."""
        in_july = dt.datetime(2027, 7, 1, 15, tzinfo=dt.UTC)
        row = ReservationFactory(
            user=self.ada, room=self.room, start=in_july, status=Status.PROCESSING
        )
        reservation = Reservation.objects.get(pk=row.pk)
        until = NOW + dt.timedelta(minutes=15)
        payment = PaymentFactory(
            reservation=reservation,
            amount=75,
            state="started",
            at=NOW,
            lease_until=until,
            action_until=until,
        )
        SandboxPayment.objects.create(
            key=payment.key, state="action_required", amount=75, secret=payment.key.hex
        )
        return reservation

    def pay(self, reservation: Reservation) -> None:
        """A captured payment of a reservation, and who issues its receipt."""
        LineItem.objects.create(
            reservation=reservation, position=1, type=LineItemType.ROOM, total=75, amount="$75.00"
        )
        payment = PaymentFactory(reservation=reservation, at=NOW)
        cause = f"payment {payment.pk}"
        with transaction.atomic():
            ledger.post(reservation.pk, EventKind.PAID, cause=cause, now=NOW)
        Seller.objects.create(legal_name="Union Rooms Inc.", legal_address="Denver")

    def make_webhook(self) -> WebhookEndpoint:
        """A webhook of all centers, with the events of both drafts and of a move."""
        webhook = WebhookEndpoint.objects.create(
            description="Door locks", url="https://hooks.example.com/", created_at=NOW
        )
        self.access_key = webhook.issue_access_key()
        record_changes(
            self.reservation,
            {"room": ("Elsewhere", self.room.name)},
            Act(None, NOW),
            former_center_id=self.other_center.pk,
        )
        publish_events(now=NOW)
        return webhook

    def draft(self, user: User, room: centers.MeetingRoom) -> Reservation:
        """A draft with everything: services, guests, used and usable allowances, a promo code."""
        options = []
        if room.center == self.center:
            options = [
                {"service_id": self.projector.pk, "duration_hours": Decimal("1.5"), "quantity": 2},
                {"service_id": self.coffee.pk},
            ]
        reservation = drafts.create_draft(
            Act(user, NOW),
            user,
            room_id=room.pk,
            start=START,
            end=END,
            services=options,
            attendees=[
                {
                    "name": "Charles Babbage",
                    "email_address": "charles@example.com",
                    "company_name": "Engines Ltd",
                }
            ],
        )
        return update_promo_code(reservation.pk, "SPRING", user=user, now=NOW)

    def body(self, operation: OperationSchema) -> dict[str, Any]:
        """A valid request with every field of the operation except Token and AppVersion."""
        own = {"ReservationId": self.reservation.pk}
        span = {"StartDate": START.isoformat(), "EndDate": END.isoformat()}
        option = {
            "ServiceId": self.projector.pk,
            "ServiceName": "Projector",
            "Selected": True,
            "NeedsDuration": True,
            "NeedsQuantity": True,
            "DurationHours": 1.5,
            "Quantity": 2,
        }
        guest = {
            "Id": 1,
            "Name": "Charles Babbage",
            "EmailAddress": "charles@example.com",
            "CompanyName": "Engines Ltd",
            "IsCreator": False,
        }
        change = {
            "ReservationId": self.paid.pk,
            "MeetingRoomId": self.room.pk,
            "StartDate": "2027-06-01T09:00:00",
            "EndDate": "2027-06-01T12:00:00",
            "ServiceOptions": [option],
            "NumberOfAttendees": 3,
            "Attendees": [guest],
        }
        filters = {
            "CapacityLow": 1,
            "CapacityHigh": 20,
            "ResourceTypeIds": [self.room.resource_type_id],
            "ServiceIds": [self.projector.resource_type_id],
            "NeighborhoodIds": [self.neighborhood.pk],
            "OnlyAfterHours": True,
            "OnlyRealtime": True,
        }
        booking = {
            "MeetingRoomId": self.room.pk,
            **span,
            "ServiceOptions": [option],
        }
        bodies: dict[str, dict[str, Any]] = {
            "Sign in": {"EmailAddress": self.ada.email, "Password": PASSWORD},
            "Get reservation": {"Id": self.reservation.pk},
            "Update account info": {
                "NewFirstName": "Augusta",
                "NewLastName": "King",
                "NewCompanyName": "Engines",
                "NewPhoneNumber": "+1 555 0100",
            },
            "Update payment info": {"PaymentInfo": PAYMENT_INFO},
            "Remove account thumbnail": {},
            "Change password": {
                "CurrentPassword": PASSWORD,
                "NewPassword": "noisy-harbour-43",
                "ConfirmNewPassword": "noisy-harbour-43",
            },
            "Search locations": {
                "Latitude": 39.7,
                "Longitude": -104.9,
                "RadiusInMiles": 50,
                "Query": "Denver, CO",
                "Filters": filters,
            },
            "City centers": {
                "AreaType": "State",
                "Area": "Colorado",
                "CityName": "Denver",
                "Filters": filters,
            },
            "Check room availability": {
                "CenterId": self.center.pk,
                "RoomId": self.room.pk,
                **span,
            },
            "List free times": {
                "RoomIds": [self.room.pk],
                "From": START.isoformat(),
                "To": END.isoformat(),
                "DurationMinutes": 60,
            },
            "List prices": {
                "RoomId": self.room.pk,
                "From": START.isoformat(),
                "To": END.isoformat(),
            },
            "Find alternatives": {
                "RoomId": self.room.pk,
                **span,
                "ServiceOptions": [option],
                "Limit": 3,
            },
            "Reservation cost": booking,
            "Update promo code": {**own, "PromoCode": "spring"},
            "Get allowances": own,
            "Checkout": {
                **own,
                "UseSavedPaymentInfo": False,
                "PaymentInfo": PAYMENT_INFO,
                "SavePaymentInfo": True,
                "TestMode": False,
                "PartnerCode": "acme",
            },
            "Get payment action": {"ReservationId": self.waiting.pk},
            "Create reservation": {
                **booking,
                "NumberOfAttendees": 3,
                "Attendees": [guest],
            },
            "Cancel reservation": {**own, "TestMode": False},
            "Get terms": {"ReservationId": self.paid.pk},
            "Get receipts": {"ReservationId": self.paid.pk},
            "Preview change": change,
            "Change reservation": {
                **change,
                "ExpectedTotal": 162.47,
                "UseSavedPaymentInfo": False,
                "PaymentInfo": PAYMENT_INFO,
            },
            "Update allowances": {**own, "AllowanceIds": [self.allowances[1].pk]},
            "List reservations": {
                "From": "2027-01-01T00:00:00Z",
                "To": "2028-01-01T00:00:00Z",
                "Statuses": ["New", "Confirmed"],
                "PageSize": 1,
                "Cursor": "",
            },
            "Get calendar": {"Revoke": False},
            "Export account": {},
            "Delete account": {"Password": PASSWORD},
            "Update favorite": {"CenterId": self.center.pk, "IsFavorite": True},
            "Remove payment info": {},
            "Create payment setup": {"ReturnUrl": "https://app.example.com/"},
            "Complete payment setup": {"PaymentSetupId": self.payment_setup},
            "Sign out": {},
            "Create account": {
                "EmailAddress": "charles@example.com",
                "Password": "stormy-lighthouse-7",
                "FirstName": "Charles",
                "LastName": "Babbage",
                "CompanyName": "Engines Ltd",
                "PhoneNumber": "+1 555 0101",
            },
            "Confirm email": {"EmailAddress": NEW_EMAIL, "Code": CODE},
            "Request password reset": {"EmailAddress": self.ada.email},
            "Reset password": {
                "EmailAddress": self.ada.email,
                "Code": CODE,
                "NewPassword": "noisy-harbour-43",
                "ConfirmNewPassword": "noisy-harbour-43",
            },
            "Change email": {"NewEmailAddress": "countess@example.com", "Password": PASSWORD},
            "List reservation changes": {
                "WebhookId": self.webhook.pk,
                "AccessKey": self.access_key,
                "Since": "2027-02-20T00:00:00Z",
                "PageSize": 100,
                "Cursor": "",
            },
        }
        return bodies[operation.name]

    def with_token(self, operation: OperationSchema, body: dict[str, Any]) -> dict[str, Any]:
        """The body with Ada's Token, if the operation needs one."""
        if not operation.needs_token:
            return body
        # Ada's account is in use, and so cannot be deleted.
        is_used = operation.name != "Delete account"
        return {**body, "Token": self.token if is_used else issue_token(UserFactory())}

    def call(self, name: str, path_end: str = "", **instead: Any) -> Any:
        """Send the operation's valid request with these fields changed, and roll it back."""
        operation = OPERATIONS_BY_NAME[name]
        body = self.with_token(operation, {**self.body(operation), **instead})
        return self.call_and_roll_back(lambda: post(self.client, operation.path + path_end, body))

    @staticmethod
    def call_and_roll_back(send: Any) -> Any:
        """Send a request and roll back its changes, so that the next one finds the same world.

        Not with `atomic()`, inside which no gateway may be called.
        """
        before = transaction.savepoint()
        try:
            return send()
        finally:
            transaction.savepoint_rollback(before)
