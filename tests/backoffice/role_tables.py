"""What each role may see and do in the back office, and rows of two centers to try it on."""

import datetime as dt
import importlib
from decimal import Decimal
from uuid import uuid4

from django.contrib.auth.models import Group
from django.urls import reverse

from accounts.models import CenterRole, OutboxMessage
from payments.models import LedgerLine, UnknownPayment
from reservations.integrations.events import create_test_event
from reservations.models import Receipt, ReceiptSeries, Seller
from reservations.models.webhooks import WebhookEndpoint
from roombook.backoffice import audit_log
from roombook.backoffice.models import AuditEntry
from tests import factories_centers as make
from tests.factories_people import AdministratorFactory, StaffFactory, UserFactory
from tests.factories_reservations import (
    AllowanceFactory,
    PartnerFactory,
    PaymentFactory,
    PromoCodeFactory,
)
from tests.world import NOW

# The permissions of each role, as the migration grants them.
MAY = importlib.import_module("reservations.migrations.0002_roles").ROLES
# Rows are those of a center; those that every role sees alike and only who may everywhere changes;
# those that only who may everywhere sees; and power, which is administrators' alone.
CENTER, SHARED, EVERYWHERE, POWER = "center", "shared", "everywhere", "power"
MODELS = {
    "accounts.OutboxMessage": EVERYWHERE,
    "accounts.StaffMember": POWER,
    "accounts.User": CENTER,
    "backoffice.AuditEntry": EVERYWHERE,
    "auth.Group": POWER,
    "centers.Center": CENTER,
    "centers.Closure": CENTER,
    "centers.MeetingRoom": CENTER,
    "centers.Neighborhood": SHARED,
    "centers.Rate": CENTER,
    "centers.PriceList": CENTER,
    "centers.Terms": CENTER,
    "centers.ResourceType": SHARED,
    "centers.Service": CENTER,
    "payments.Dispute": CENTER,
    "payments.LedgerLine": CENTER,
    "payments.Payment": CENTER,
    "payments.Refund": CENTER,
    "payments.SavedCard": EVERYWHERE,
    "payments.UnknownPayment": EVERYWHERE,
    "reservations.Allowance": CENTER,
    "reservations.Partner": SHARED,
    "reservations.PromoCode": CENTER,
    "reservations.Receipt": CENTER,
    "reservations.Reservation": CENTER,
    "reservations.Seller": CENTER,
    "reservations.WebhookDelivery": CENTER,
    "reservations.WebhookEndpoint": CENTER,
}
# Rows of these belong to several centers, or to none, so that a role at one does not change them.
CHANGED_EVERYWHERE_ONLY = {
    *(label for label, kind in MODELS.items() if kind in (SHARED, EVERYWHERE)),
    *("accounts.User", "reservations.Allowance", "reservations.PromoCode"),
}
# And these are made by who may everywhere, but then changed at their center.
MADE_EVERYWHERE_ONLY = {*CHANGED_EVERYWHERE_ONLY, "centers.Center"}

OF_A_MODEL = ("changelist", "add", "history", "delete", "change")
IMPORTED = (
    *("centers_center", "centers_closure", "centers_rate", "centers_meetingroom"),
    *(
        "centers_pricelist",
        "centers_terms",
        "centers_resourcetype",
        "centers_service",
        "reservations_allowance",
        "reservations_promocode",
    ),
)
# For all staff, or for everybody: these pages show no rows of anybody.
OPEN = {
    *("index", "login", "logout", "password_change", "password_change_done", "jsi18n"),
    *("app_list", "search", "view_on_site", "autocomplete"),
    # Of the user's own account.
    *("accounts_second_factor", "accounts_second_factor_set_up", "accounts_second_factor_off"),
    *("accounts_recovery_codes", "admin_password_reset"),
    # Needs the secret of an e-mail.
    "accounts_invitation",
    "accounts_new_password",
    # Leads on to the dashboard: test_dashboard.py tries who may add them.
    "centers_resourcetype_samples",
    # Only leads on to the first of them.
    "reservations_reports",
}
# The permission that opens a page; "everywhere" where it has to be had at all centers.
PAGES = {
    "auth_user_password_change": ("accounts.change_user", EVERYWHERE),
    "accounts_user_sign_out": ("accounts.change_user", EVERYWHERE),
    "accounts_user_contact": ("accounts.correct_user", CENTER),
    "accounts_user_erase": ("accounts.erase_user", EVERYWHERE),
    "accounts_user_export": ("accounts.erase_user", EVERYWHERE),
    "centers_time_zone": ("centers.view_center", CENTER),
    "centers_closure_holidays": ("centers.add_closure", CENTER),
    "centers_rate_examples": ("centers.view_rate", CENTER),
    "centers_rate_choices": ("centers.view_rate", CENTER),
    "reservations_draft_preview": ("reservations.add_reservation", CENTER),
    "reservations_draft_customers": ("reservations.add_reservation", CENTER),
    "reservations_find_room": ("reservations.add_reservation", CENTER),
    "reservations_report": ("reservations.see_reports", CENTER),
    "reservations_timeline": ("reservations.view_reservation", CENTER),
    "reservations_timeline_week": ("reservations.view_reservation", CENTER),
    "reservations_in_closures": ("reservations.view_reservation", CENTER),
    "reservations_today": ("reservations.view_reservation", CENTER),
    "reservations_webhookendpoint_credentials": ("reservations.change_webhookendpoint", CENTER),
    "reservations_room_week": ("reservations.view_reservation", CENTER),
    "reservations_reservation_receipts": ("reservations.view_receipt", CENTER),
    "reservations_receipt_file": ("reservations.view_receipt", CENTER),
    "reservations_reservation_action": ("reservations.change_reservation", CENTER),
    "reservations_reservation_list_export": ("reservations.view_reservation", CENTER),
    "reservations_receipt_list_export": ("reservations.view_receipt", CENTER),
    "payments_payment_list_export": ("payments.view_payment", CENTER),
    "payments_ledgerline_list_export": ("payments.view_ledgerline", CENTER),
    "payments_refund_list_export": ("payments.view_refund", CENTER),
}
FOREIGN = "Foreignplace"

ACTORS = {
    "viewer of A": ("Viewer", True),
    "desk of A": ("Desk", True),
    "manager of A": ("Manager", True),
    "accountant of A": ("Accountant", True),
    "viewer": ("Viewer", False),
    "desk": ("Desk", False),
    "manager": ("Manager", False),
    "accountant": ("Accountant", False),
    "staff without a role": (None, False),
    "customer": (None, False),
    "nobody": (None, False),
    "administrator": (None, False),
}


class Actor:
    def __init__(self, name, client, world, groups):
        self.name, self.client = name, client
        self.role, self.at_a = ACTORS[name]
        self.is_root = name == "administrator"
        self.may = MAY.get(self.role, set())
        if name == "nobody":
            return
        if name == "customer":
            self.user = UserFactory()
            # Left over from when they were staff.
            CenterRole.objects.create(user=self.user, center=world.center, group=groups["Manager"])
        elif self.is_root:
            self.user = AdministratorFactory()
        else:
            self.user = StaffFactory(email="actor@example.com")
            if self.at_a:
                CenterRole.objects.create(
                    user=self.user, center=world.center, group=groups[self.role]
                )
            elif self.role:
                self.user.groups.add(groups[self.role])
        client.force_login(self.user)

    def pick(self, both):
        """The rows whose pages to ask for: for a role at all centers, B's are as A's are."""
        return [*zip("ab", both, strict=True)][0 if self.at_a else 1 :]

    def has(self, permission, where=CENTER):
        if self.is_root:
            return True
        return permission in self.may and not (where == EVERYWHERE and self.at_a)

    def sees(self, label, row):
        """Whether a row, "a" or "b", is theirs to see."""
        kind = MODELS[label]
        if kind == POWER:
            return self.is_root
        app, model = label.lower().split(".")
        may = any(self.has(f"{app}.{action}_{model}") for action in ("view", "change"))
        if kind == EVERYWHERE:
            return may and not self.at_a
        return may and (kind == SHARED or row == "a" or not self.at_a)

    def changes(self, label, row, action="change"):
        app, model = label.lower().split(".")
        only = MADE_EVERYWHERE_ONLY if action == "add" else CHANGED_EVERYWHERE_ONLY
        where = EVERYWHERE if label in only else CENTER
        return self.sees(label, row) and self.has(f"{app}.{action}_{model}", where)


def rows_of(world):
    """Of each model a row of A and one of B."""
    a, b = world.center, world.other_center
    b.name = FOREIGN
    b.save()
    b.rooms.update(name=f"{FOREIGN} room")
    world.bob.last_name, world.bob.email = FOREIGN, "foreignplace@example.com"
    world.bob.save()
    rows = {
        "centers.Center": (a, b),
        "centers.MeetingRoom": (world.room, b.rooms.get()),
        "centers.Rate": (world.room.rate, b.rooms.get().rate),
        "centers.Service": (world.projector, world.other_service),
        "accounts.User": (world.ada, world.bob),
        "reservations.Reservation": (world.reservation, world.bobs_reservation),
        "payments.SavedCard": (world.ada.saved_card, world.bob.saved_card),
        "payments.UnknownPayment": tuple(
            UnknownPayment.objects.create(
                gateway="sandbox", key=uuid4(), description=name, found_at=NOW
            )
            for name in ("Ours", FOREIGN)
        ),
    }
    for row in (*b.rates.all(), *b.services.all()):
        row.name = f"{FOREIGN} {row.pk}"
        row.save()

    def of(label, center):
        """The row of a center that was made before."""
        return rows[label][center == b]

    def bound(row, center):
        row.centers.add(center)
        return row

    hour, url = dt.timedelta(hours=1), "https://hooks.example.com/"
    reservations = {a: world.reservation, b: world.bobs_reservation}
    customers = {a: world.ada, b: world.bob}
    makers = {
        "centers.Closure": lambda center, name: make.ClosureFactory(
            center=center, reason=name, starts_at=NOW, ends_at=NOW + hour
        ),
        "centers.PriceList": lambda center, name: make.PriceListFactory(
            rate=of("centers.Rate", center), name=name
        ),
        "centers.Terms": lambda center, name: make.TermsFactory(center=center, name=name),
        "centers.Neighborhood": lambda *_: make.NeighborhoodFactory(),
        "centers.ResourceType": lambda *_: make.ResourceTypeFactory(),
        "reservations.Partner": lambda *_: PartnerFactory(),
        "reservations.PromoCode": lambda center, name: bound(PromoCodeFactory(code=name), center),
        "reservations.Allowance": lambda center, name: bound(
            AllowanceFactory(user=customers[center], description=name), center
        ),
        "payments.Payment": lambda center, _: PaymentFactory(
            reservation=reservations[center], amount=Decimal(50), at=NOW
        ),
        "payments.LedgerLine": lambda center, _: LedgerLine.objects.create(
            at=NOW,
            kind="paid",
            reservation=reservations[center],
            center=center,
            currency="USD",
            day=NOW.date(),
        ),
        "payments.Refund": lambda center, _: of("payments.Payment", center).refunds.create(
            amount=5, state="refused", created_at=NOW, done_at=NOW
        ),
        "payments.Dispute": lambda center, name: of("payments.Payment", center).disputes.create(
            reference=f"dispute at {name}", amount=5, currency="USD", opened_at=NOW
        ),
        "reservations.WebhookEndpoint": lambda center, name: WebhookEndpoint.objects.create(
            description=name, url=url, center=center, created_at=NOW
        ),
        "reservations.Receipt": lambda center, name: Receipt.objects.create(
            type="Receipt",
            series=ReceiptSeries.objects.create(name=name),
            number_in_series=1,
            number=name,
            reservation=reservations[center],
            issued_at=NOW,
            currency="USD",
            total=Decimal(5),
            content={"total": "$5.00"},
        ),
        "reservations.Seller": lambda center, name: Seller.objects.create(
            center=center, legal_name=name, legal_address=name
        ),
        "reservations.WebhookDelivery": lambda center, _: create_test_event(
            of("reservations.WebhookEndpoint", center), now=NOW
        ),
        "auth.Group": lambda _, name: Group.objects.create(name=f"Night shift {name}"),
        "accounts.StaffMember": lambda _, name: StaffFactory(last_name=name),
        "accounts.OutboxMessage": lambda _, name: OutboxMessage.objects.create(
            user=world.ada,
            to="ada@example.com",
            kind="x",
            subject=name,
            text=name,
            created_at=NOW,
            next_attempt_at=NOW,
        ),
    }
    for label, make_row in makers.items():
        rows[label] = make_row(a, "Ours"), make_row(b, FOREIGN)
    for row in rows["reservations.Seller"]:
        audit_log.record_change(row, {"tax_number": ("Once", row.tax_number)})
    rows["backoffice.AuditEntry"] = tuple(
        AuditEntry.objects.filter(object_name=name).latest("pk") for name in ("Ours", FOREIGN)
    )
    return rows


def is_refused(response):
    if response.status_code == 302:
        # To the sign-in page, or back to the dashboard: there is no such row.
        return response.url.startswith(reverse("admin:login")) or response.url == reverse(
            "admin:index"
        )
    return response.status_code in (403, 404)


def content_of(response):
    return b"".join(response.streaming_content) if response.streaming else response.content


def judge(actor, response, allowed, what):
    """The page is open, or refused, as it should be; and tells nobody at A of B."""
    where = f"{what}, {actor.name}: {response.status_code}"
    assert response.status_code < 500, where
    assert is_refused(response) != allowed, where
    if actor.at_a and response.status_code == 200:
        text = content_of(response).decode(errors="replace")
        assert FOREIGN.lower() not in text.lower(), f"{where} tells of B"


# Rows of these are added and changed by managers at their center.
AT_CENTERS = (
    *("reservations.WebhookEndpoint", "centers.MeetingRoom", "centers.Rate", "centers.PriceList"),
    *("centers.Terms", "centers.Service", "centers.Closure"),
)

STAFF_PAGES = (
    *("accounts_user_change", "auth_user_password_change", "accounts_user_sign_out"),
    *("accounts_user_contact", "accounts_user_erase", "accounts_user_export"),
)
