"""No page of the back office executes more queries when there are more rows."""

from decimal import Decimal

import pytest
from django.apps import apps
from django.contrib.contenttypes.models import ContentType
from django.test import Client
from django.urls import reverse

from accounts.models import CenterRole, User
from payments.models import Dispute, Payment, Refund
from reservations import models
from reservations.models.status import Status
from reservations.reports.pages import REPORTS
from roombook.backoffice import audit_log
from tests import factories_centers as make
from tests.backoffice.many import many
from tests.backoffice.reading import count_queries
from tests.factories_people import AdministratorFactory, StaffFactory, UserFactory, issue_token
from tests.factories_reservations import (
    HOUR,
    MINUTE,
    NOW,
    AllowanceFactory,
    PartnerFactory,
    PromoCodeFactory,
    make_room,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

DAY = 24 * HOUR
# A query for each row shows with few rows as with many, whose pages take long to render. Three make
# twelve alerts, which are more than the dashboard lists.
FEW, MORE = range(3), range(3, 7)
# The query of each list that is searched or filtered, too.
LISTS = {
    "accounts.user": ("", "?q=lovelace", "?q=5550111"),
    "accounts.staffmember": ("",),
    "backoffice.auditentry": ("",),
    "centers.center": ("", "?q=center"),
    "centers.closure": ("", "?q=center"),
    "centers.meetingroom": ("", "?q=room"),
    "centers.neighborhood": ("",),
    "centers.rate": ("", "?q=center"),
    "centers.resourcetype": ("",),
    "centers.service": ("",),
    "payments.dispute": ("", "?q=ada"),
    "payments.payment": ("", "?q=ada"),
    "payments.refund": ("", "?q=ada"),
    "reservations.allowance": ("",),
    "reservations.partner": ("",),
    "reservations.promocode": ("",),
    "reservations.reservation": ("", "?when=all", "?q=ada", "?q=5550111"),
}


class Business:
    """A center of which everything is there many times, next to many other centers."""

    def __init__(self):
        self.room = make_room()
        self.center, self.rate = self.room.center, self.room.rate
        self.customer = UserFactory(phone_number="+1 720 555 0111")
        self.author = StaffFactory()
        self.promo, self.partner = PromoCodeFactory(), PartnerFactory()
        self.allowance = AllowanceFactory(user=self.customer)

    def fill(self, numbers):
        first = numbers[0]
        users = User.objects.bulk_create(
            User(email=f"c{n}@example.com", last_name="Lovelace", phone_number="720 555 0111")
            for n in numbers
        )
        for number, user in zip(numbers, users, strict=True):
            self.add_to_center(number)
            self.add_center(number)
            self.add_member_of_staff()
            self.add_discounts()
            many(self.room, user, 1, start=NOW - (100 + number) * DAY)
            issue_token(user)
        for status, at in (
            (Status.COMPLETED, NOW - 2 * HOUR),
            (Status.CONFIRMED, NOW + HOUR),
            (Status.PENDING, NOW + 2 * HOUR),
            (Status.NO_SHOW, NOW - 4 * HOUR),
        ):
            rows = many(
                *(self.room, self.customer, len(numbers)),
                start=at + first * MINUTE,
                status=status,
                promo_code=self.promo,
                partner=self.partner,
            )
            self.add_details(rows)
        for n in numbers:
            rates = {"rate": (self.rate.pk, self.rate.pk + n)}
            audit_log.record_change(self.room, rates, by=self.author)

    def add_to_center(self, number):
        room = make.MeetingRoomFactory(center=self.center, name=f"Room {number}", rate=self.rate)
        many(room, self.customer, 2, start=NOW + HOUR, status=Status.CONFIRMED)
        make.ServiceFactory(center=self.center, rate=make.RateFactory(center=self.center))
        # Its bookings are to be resolved.
        make.ClosureFactory(center=self.center, room=room, starts_at=NOW, ends_at=NOW + DAY)

    def add_center(self, number):
        quarter = make.NeighborhoodFactory(name=f"Quarter {number}")
        center = make.make_center_with_room(neighborhood=quarter)
        make.ClosureFactory(center=center, starts_at=NOW + DAY, ends_at=NOW + 2 * DAY)

    def add_member_of_staff(self):
        user = StaffFactory()
        for role in self.author.center_roles.all():
            CenterRole.objects.create(user=user, center=self.center, group=role.group)

    def add_discounts(self):
        PromoCodeFactory()
        PartnerFactory()
        AllowanceFactory(user=self.customer)

    def add_details(self, rows):
        entered = {"allowance": self.allowance, "hours": 1}
        for model, fields in (
            (models.LineItem, {"position": 1, "type": "Promotion", "total": Decimal(-1)}),
            (models.AllowanceUse, {**entered, "discount": Decimal(1)}),
            (models.AllowanceEntry, {**entered, "at": NOW, "reason": "x"}),
            (models.Note, {"text": "x", "author": self.author, "created_at": NOW}),
        ):
            model.objects.bulk_create(model(reservation=row, **fields) for row in rows)
        payments = Payment.objects.bulk_create(
            Payment(
                reservation=row,
                cash_center=row.room.center,
                gateway="sandbox",
                amount=1,
                currency="USD",
                state="voided",
                reservation_uid=row.uid,
                lease_until=NOW,
                created_at=NOW,
                closed_at=NOW,
            )
            for row in rows
        )
        Refund.objects.bulk_create(
            Refund(payment=each, amount=1, created_at=NOW) for each in payments
        )
        Dispute.objects.bulk_create(
            Dispute(payment=each, reference=f"{each.key}", amount=1, currency="USD", opened_at=NOW)
            for each in payments
        )

    def get_addresses(self):
        """The pages that show many rows."""
        place = f"?center={self.center.pk}&date=2027-03-01"
        return [
            reverse("admin:index"),
            reverse("admin:reservations_today"),
            reverse("admin:reservations_in_closures"),
            reverse("admin:reservations_timeline") + place,
            reverse("admin:reservations_timeline_week") + place,
            reverse("admin:reservations_room_week") + f"?room={self.room.pk}&date=2027-03-01",
            reverse("admin:reservations_reservation_add") + f"?room={self.room.pk}",
            reverse("admin:search") + "?s=lovelace&extended=1",
            *(
                f"{reverse('admin:centers_center_change', args=[self.center.pk])}?tab={tab}"
                for tab in ("", "rate", "meetingroom", "service", "closure", "openinghours")
            ),
            reverse("admin:centers_meetingroom_history", args=[self.room.pk]),
            reverse("admin:accounts_user_change", args=[self.customer.pk]),
            reverse("admin:reservations_allowance_change", args=[self.allowance.pk]),
            reverse("admin:reservations_promocode_change", args=[self.promo.pk]),
            *(reverse("admin:reservations_report", args=[name]) for name in REPORTS),
        ]

    def get_lists(self):
        return [
            reverse(f"admin:{label.replace('.', '_')}_changelist") + query
            for label, queries in LISTS.items()
            for query in queries
        ]


def test_pages_execute_no_more_queries_for_more_rows(staff):
    business = Business()
    desk = staff("Desk", business.center)
    CenterRole.objects.create(
        user=business.author, center=business.center, group=desk.center_roles.get().group
    )
    clients = {"administrator": Client(), "desk": Client()}
    clients["administrator"].force_login(AdministratorFactory())
    clients["desk"].force_login(desk)
    # They are cached for as long as the process lives, and so would only count the first time.
    ContentType.objects.get_for_models(*apps.get_models())

    def count():
        return {
            (who, address): count_queries(client, address, can_be_refused=who == "desk")
            for who, client in clients.items()
            for address in (
                *business.get_addresses(),
                # The desk's rows of a list are a part of the administrator's.
                *(business.get_lists() if who == "administrator" else ()),
            )
        }

    business.fill(FEW)
    few = count()
    business.fill(MORE)
    more = count()

    assert {each: (few[each], more[each]) for each in few if more[each] > few[each]} == {}
    assert max(more.values()) < 50
