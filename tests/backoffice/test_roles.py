"""Who sees and does what in the back office (B18): every page of it, for every role.

The pages are not listed here to be called: they are found by walking the site's addresses, so that
one that is new fails until a table below says who may open it. Rows of center A are everybody's at
A; staff with a role at A only never see anything of center B.
"""

import datetime as dt
import importlib
from copy import deepcopy
from decimal import Decimal
from uuid import uuid4

import pytest
import time_machine
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth.models import Group
from django.urls import URLResolver, reverse

from accounts.models import CenterRole, OutboxMessage, User
from payments.models import Dispute, Payment, Refund, UnknownPayment
from reservations.admin.actions import ACTIONS
from reservations.models import Allowance, Partner, PromoCode
from roombook.backoffice import audit_log
from roombook.backoffice.models import AuditEntry
from tests import factories_centers as make
from tests.factories_people import AdministratorFactory, StaffFactory, UserFactory
from tests.world import NOW, World

pytestmark = pytest.mark.django_db

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
    "centers.CenterImage": CENTER,
    "centers.Closure": CENTER,
    "centers.Favorite": CENTER,
    "centers.Landmark": CENTER,
    "centers.MeetingRoom": CENTER,
    "centers.Neighborhood": SHARED,
    "centers.OpeningHours": CENTER,
    "centers.Rate": CENTER,
    "centers.ResourceType": SHARED,
    "centers.Service": CENTER,
    "payments.Dispute": CENTER,
    "payments.Payment": CENTER,
    "payments.Refund": CENTER,
    "payments.SavedCard": EVERYWHERE,
    "payments.UnknownPayment": EVERYWHERE,
    "reservations.Allowance": CENTER,
    "reservations.Partner": SHARED,
    "reservations.PromoCode": CENTER,
    "reservations.Reservation": CENTER,
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
    *("centers_service", "reservations_allowance", "reservations_promocode"),
)
# For all staff, or for everybody: these pages show no rows of anybody.
OPEN = {
    *("index", "login", "logout", "password_change", "password_change_done", "jsi18n"),
    *("app_list", "search", "view_on_site", "autocomplete"),
    # Of the user's own account.
    *("accounts_second_factor", "accounts_second_factor_set_up", "accounts_second_factor_off"),
    # Needs the secret of an e-mail.
    "accounts_invitation",
    # Only leads on to the first of them.
    "reservations_reports",
}
# The permission that opens a page; "everywhere" where it has to be had at all centers.
PAGES = {
    "auth_user_password_change": ("accounts.change_user", EVERYWHERE),
    "accounts_user_sign_out": ("accounts.change_user", EVERYWHERE),
    "centers_time_zone": ("centers.view_center", CENTER),
    "centers_closure_holidays": ("centers.add_closure", CENTER),
    "centers_rate_examples": ("centers.view_rate", CENTER),
    "centers_rate_choices": ("centers.view_rate", CENTER),
    "reservations_draft_preview": ("reservations.add_reservation", CENTER),
    "reservations_draft_customers": ("reservations.add_reservation", CENTER),
    "reservations_report": ("reservations.see_reports", CENTER),
    "reservations_timeline": ("reservations.view_reservation", CENTER),
    "reservations_room_week": ("reservations.view_reservation", CENTER),
    "reservations_reservation_action": ("reservations.change_reservation", CENTER),
    "reservations_reservation_list_export": ("reservations.view_reservation", CENTER),
    "payments_payment_list_export": ("payments.view_payment", CENTER),
    "payments_refund_list_export": ("payments.view_refund", CENTER),
}
FOREIGN = "Foreignplace"


def walk(patterns):
    for each in patterns:
        if isinstance(each, URLResolver):
            yield from walk(each.url_patterns)
        else:
            yield each


# --- Who, and what there is -------------------------------------------------------------------


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
            UnknownPayment.objects.create(key=uuid4(), description=name, found_at=NOW)
            for name in ("Ours", FOREIGN)
        ),
    }
    for row in (*b.rates.all(), *b.services.all()):
        row.name = f"{FOREIGN} {row.pk}"
        row.save()

    def both(label, made):
        rows[label] = tuple(made(center, name) for center, name in ((a, "Ours"), (b, FOREIGN)))

    both("centers.OpeningHours", lambda center, _: center.opening_hours.first())
    both("centers.Landmark", lambda center, name: make.LandmarkFactory(center=center, name=name))
    both("centers.CenterImage", lambda center, _: make.CenterImageFactory(center=center))
    both(
        "centers.Closure",
        lambda center, name: make.ClosureFactory(
            center=center, reason=name, starts_at=NOW, ends_at=NOW + dt.timedelta(hours=1)
        ),
    )
    both(
        "centers.Favorite",
        lambda center, _: make.FavoriteFactory(user=UserFactory(), center=center),
    )
    both("centers.Neighborhood", lambda *_: make.NeighborhoodFactory())
    both("centers.ResourceType", lambda *_: make.ResourceTypeFactory())
    both(
        "reservations.Partner",
        lambda center, _: Partner.objects.create(code=f"P{center.pk}", name="Acme"),
    )

    def bound(row, center):
        row.centers.add(center)
        return row

    both(
        "reservations.PromoCode",
        lambda center, name: bound(PromoCode.objects.create(code=name, percent=10), center),
    )
    both(
        "reservations.Allowance",
        lambda center, name: bound(
            Allowance.objects.create(
                user=world.ada if center == a else world.bob, description=name, hours=2
            ),
            center,
        ),
    )
    both(
        "payments.Payment",
        lambda center, _: Payment.objects.create(
            reservation=world.reservation if center == a else world.bobs_reservation,
            gateway="sandbox",
            amount=Decimal(50),
            currency="USD",
            state="captured",
            lease_until=NOW,
            created_at=NOW,
            authorized_at=NOW,
            captured_at=NOW,
        ),
    )
    paid = dict(zip((a, b), rows["payments.Payment"], strict=True))
    both(
        "payments.Refund",
        lambda center, _: Refund.objects.create(
            payment=paid[center], amount=Decimal(5), state="refused", created_at=NOW
        ),
    )
    both(
        "payments.Dispute",
        lambda center, name: Dispute.objects.create(
            payment=paid[center],
            reference=f"dispute at {name}",
            amount=Decimal(5),
            currency="USD",
            status="needs_response",
            opened_at=NOW,
        ),
    )
    both("auth.Group", lambda _, name: Group.objects.create(name=f"Night shift {name}"))
    both("accounts.StaffMember", lambda _, name: StaffFactory(last_name=name))
    both(
        "accounts.OutboxMessage",
        lambda _, name: OutboxMessage.objects.create(
            user=world.ada,
            to="ada@example.com",
            kind="x",
            subject=name,
            text=name,
            created_at=NOW,
            next_attempt_at=NOW,
        ),
    )
    for row in rows["centers.Landmark"]:
        audit_log.record_change(row, {"name": ("Once", row.name)})
    both(
        "backoffice.AuditEntry",
        lambda _, name: AuditEntry.objects.filter(object_name=name).latest("pk"),
    )
    return rows


@pytest.fixture(scope="module")
def both_for_all(make_once):
    def make():
        world = World(client=None)
        return world, rows_of(world)

    return make_once(make)


@pytest.fixture
def both(both_for_all, client, db):
    """The world and its rows, as they were made."""
    world, rows = deepcopy(both_for_all)
    world.client = client
    with time_machine.travel(NOW, tick=False):
        yield world, rows


@pytest.fixture
def world(both):
    return both[0]


@pytest.fixture
def rows(both):
    return both[1]


@pytest.fixture
def actor(request, client, world, groups):
    return Actor(request.param, client, world, groups)


every_actor = pytest.mark.parametrize("actor", ACTORS, indirect=True)
at_a = pytest.mark.parametrize(
    "actor", [name for name, (_, at_a) in ACTORS.items() if at_a], indirect=True
)


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
        assert_no_inline_script(text, where)


def assert_no_inline_script(text, where):
    for piece in text.split("<script")[1:]:
        tag, _, rest = piece.partition(">")
        is_code = "src=" not in tag and "application/json" not in tag
        assert not (is_code and rest.partition("</script")[0].strip()), f"{where} holds a script"
    for handler in (" onclick=", " onchange=", " onsubmit=", " onload="):
        assert handler not in text, f"{where} holds {handler}"


# --- Nothing escapes --------------------------------------------------------------------------


def test_every_registered_model_is_in_the_table():
    assert {model._meta.label for model in admin.site._registry} == set(MODELS)


def test_every_back_office_url_is_in_a_table():
    known = {*OPEN, *PAGES}
    for label in MODELS:
        known |= {f"{label.lower().replace('.', '_')}_{page}" for page in OF_A_MODEL}
    for name in IMPORTED:
        known |= {f"{name}_{page}" for page in ("import", "process_import", "export")}
    # Without a name: Django's redirect of an object, and the catch-all.
    assert {each.name for each in walk(admin.site.urls[0]) if each.name} - known == set()


# --- Pages of each model ----------------------------------------------------------------------


@every_actor
def test_model_pages_show_only_permitted_rows(actor, rows):
    for label, both in rows.items():
        name = "admin:" + label.lower().replace(".", "_")
        response = actor.client.get(reverse(f"{name}_changelist"))
        judge(actor, response, actor.sees(label, "a"), f"list of {label}")
        if response.status_code == 200:
            listed = response.context["cl"].queryset
            for which, row in zip("ab", both, strict=True):
                seen = listed.filter(pk=row.pk).exists()
                assert seen == actor.sees(label, which), (label, which, actor.name)
        for which, row in zip("ab", both, strict=True):
            for page in ("change", "history"):
                response = actor.client.get(reverse(f"{name}_{page}", args=[row.pk]))
                judge(actor, response, actor.sees(label, which), f"{page} of {label} {which}")
            if not actor.changes(label, which, "delete"):
                address = reverse(f"{name}_delete", args=[row.pk])
                judge(actor, actor.client.get(address), False, f"delete of {label} {which}")
            if not actor.changes(label, which):
                address = reverse(f"{name}_change", args=[row.pk])
                answer = actor.client.post(address, {"_save": "1"})
                if answer.status_code != 405:
                    judge(actor, answer, False, f"change of {label} {which}")
        if not actor.changes(label, "a", "add"):
            judge(actor, actor.client.get(reverse(f"{name}_add")), False, f"add {label}")
            answer = actor.client.post(reverse(f"{name}_add"), {})
            judge(actor, answer, False, f"add {label} by POST")


@every_actor
def test_custom_pages_require_their_permission(actor, rows, world):
    """Each for a row of A; and, where it is about a row, for one of B."""
    both = {"a": (world.center, world.room, world.ada), "b": ()}
    both["b"] = (world.other_center, world.other_center.rooms.get(), world.bob)
    for name, (permission, where) in PAGES.items():
        for which, (center, room, customer) in both.items():
            args, query, method = [], {}, actor.client.get
            if name in ("auth_user_password_change", "accounts_user_sign_out"):
                args = [customer.pk]
            elif name == "reservations_report":
                args, query = ["revenue"], {"center": center.pk}
            elif name.endswith("_list_export"):
                args = ["csv"]
            elif name == "centers_rate_examples":
                method = actor.client.post
            elif name == "reservations_draft_preview":
                method, query = actor.client.post, {"center": center.pk, "room": room.pk}
            elif name == "reservations_draft_customers":
                query = {"term": "foreign"}
            elif name in ("reservations_timeline", "centers_rate_choices"):
                query = {"center": center.pk}
            elif name == "reservations_room_week":
                query = {"room": room.pk}
            elif name == "reservations_reservation_action":
                continue
            response = method(reverse(f"admin:{name}", args=args), query)
            allowed = actor.has(permission, where)
            if which == "b" and actor.at_a and is_refused(response):
                continue
            judge(actor, response, allowed, f"{name} {which}")


@every_actor
def test_reservation_actions_require_their_permission(actor, rows):
    for which, row in zip("ab", rows["reservations.Reservation"], strict=True):
        for name, step in ACTIONS.items():
            address = reverse("admin:reservations_reservation_action", args=[row.pk, name])
            allowed = actor.has(step.permission) and actor.sees("reservations.Reservation", which)
            for response in (
                actor.client.get(address),
                actor.client.post(address, {"confirmed": "yes"}) if not allowed else None,
            ):
                if response is not None:
                    judge(actor, response, allowed, f"step {name} {which}")


@every_actor
def test_import_and_export_pages_require_their_permission(actor, rows):
    for name in IMPORTED:
        app, model = name.split("_")
        label = next(each for each in MODELS if each.lower() == f"{app}.{model}")
        add, change, view = (f"{app}.{each}_{model}" for each in ("add", "change", "view"))
        shared = label in CHANGED_EVERYWHERE_ONLY
        where = EVERYWHERE if shared else CENTER
        may_import = actor.has(change, where) or actor.has(add, where)
        reported = actor.has(view, where) and actor.has("reservations.see_reports", where)
        may_export = actor.has(change, where) or reported
        judge(actor, actor.client.get(reverse(f"admin:{name}_import")), may_import, name)
        if not may_import:
            response = actor.client.post(reverse(f"admin:{name}_process_import"))
            assert is_refused(response), (name, actor.name)
        for form in ("csv", "xlsx"):
            response = actor.client.get(reverse(f"admin:{name}_export"), {"format": form})
            if form == "csv":
                judge(actor, response, may_export, f"export of {name}")
            else:
                assert is_refused(response) != may_export


# --- Actions, boxes and forged rows -----------------------------------------------------------


def snapshot(rows, which):
    """All columns of the rows of a center."""
    return {
        label: type(both[which]).objects.filter(pk=both[which].pk).values().get()
        for label, both in rows.items()
    }


@pytest.mark.parametrize(
    "actor", [name for name in ACTORS if name != "administrator"], indirect=True
)
def test_list_actions_change_only_permitted_rows(actor, rows):
    before_a, before_b = snapshot(rows, 0), snapshot(rows, 1)
    for model, page in admin.site._registry.items():
        label = model._meta.label
        for _, name, _ in page._get_base_actions():
            actor.client.post(
                reverse(f"admin:{label.lower().replace('.', '_')}_changelist"),
                {
                    "action": name,
                    ACTION_CHECKBOX_NAME: [row.pk for row in rows[label]],
                    "confirmed": "yes",
                    "post": "yes",
                    "reason": "Cash",
                },
            )
    if actor.at_a:
        assert snapshot(rows, 1) == before_b
    if actor.role in (None, "Viewer"):
        assert snapshot(rows, 0) == before_a
        assert snapshot(rows, 1) == before_b


@at_a
def test_autocomplete_offers_no_row_of_another_center(actor, rows):
    address = reverse("admin:autocomplete")
    for model, page in admin.site._registry.items():
        for owner in (page, *(inline(model, admin.site) for inline in page.inlines)):
            for field in owner.autocomplete_fields:
                opts = owner.model._meta
                related = opts.get_field(field).related_model._meta.label
                response = actor.client.get(
                    address,
                    {
                        "app_label": opts.app_label,
                        "model_name": opts.model_name,
                        "field_name": field,
                        "term": "foreign",
                    },
                )
                text = response.content.decode()
                assert response.status_code in (200, 403), (opts.label, field)
                assert FOREIGN.lower() not in text.lower() or MODELS[related] == SHARED, text


@at_a
def test_autocomplete_by_full_email_finds_no_customer_of_another_center(actor, rows, world):
    """The page of a new reservation asks for it in a box of its own, and tells no name."""
    query = {"app_label": "reservations", "model_name": "reservation", "field_name": "user"}

    response = actor.client.get(reverse("admin:autocomplete"), {**query, "term": world.bob.email})

    if actor.has("accounts.view_user"):
        assert response.json()["results"] == []
    else:
        assert response.status_code == 403


@pytest.mark.parametrize("actor", ["desk of A", "manager of A"], indirect=True)
def test_new_reservation_reveals_nothing_about_a_customer_found_by_email(actor, rows, world):
    page = reverse("admin:reservations_reservation_add")
    room = world.other_center.rooms.get()
    for query in (
        {"center": world.center.pk, "user": world.bob.pk},
        {"center": world.center.pk, "room": room.pk},
        {"center": world.other_center.pk},
        {"room": room.pk},
    ):
        response = actor.client.get(page, query)
        text = response.content.decode().lower()
        assert response.status_code in (200, 404), query
        assert FOREIGN.lower() not in text, query


FORGED = {
    "centers.MeetingRoom": {
        "name": "Forged",
        "capacity": 4,
        "resource_type": "type",
        "turnaround_minutes": 0,
    },
    "centers.Rate": {"name": "Forged", "hourly": "5"},
    "centers.Service": {
        "name": "Forged",
        "resource_type": "service type",
        "position": 0,
        "minimum_booking": 0,
    },
    "centers.Landmark": {"name": "Forged"},
    "centers.Closure": {
        "reason": "Forged",
        "starts_at_0": "2027-03-01",
        "starts_at_1": "10:00",
        "ends_at_0": "2027-03-01",
        "ends_at_1": "11:00",
    },
    "centers.OpeningHours": {"weekday": 0, "opens": "03:00", "closes": "04:00"},
}


@pytest.mark.parametrize("label", FORGED)
@pytest.mark.parametrize("actor", ["manager of A"], indirect=True)
def test_manager_cannot_move_rows_to_another_center(actor, rows, world, label):
    ours, theirs = rows[label]
    fields = dict(FORGED[label])
    if "resource_type" in fields:
        is_service = fields["resource_type"] == "service type"
        kind = make.ServiceTypeFactory if is_service else make.ResourceTypeFactory
        fields["resource_type"] = kind().pk
    model = type(ours)
    name = "admin:" + label.lower().replace(".", "_")
    before = model.objects.filter(center=world.other_center).count()
    fields["center"] = world.other_center.pk

    added = actor.client.post(reverse(f"{name}_add"), fields)
    moved = actor.client.post(reverse(f"{name}_change", args=[ours.pk]), fields)
    changed = actor.client.post(reverse(f"{name}_change", args=[theirs.pk]), fields)

    assert added.status_code in (200, 403)
    assert moved.status_code in (200, 403)
    assert is_refused(changed)
    assert model.objects.filter(center=world.other_center).count() == before
    fields["center"] = world.center.pk
    good = actor.client.post(reverse(f"{name}_add"), fields)
    assert good.status_code == 302, good.context["adminform"].form.errors


@pytest.mark.parametrize("actor", ["manager of A"], indirect=True)
def test_editable_list_refuses_rows_that_are_view_only(actor, rows, world, groups):
    """Manager at A, Viewer at B: both are listed, one is changed."""
    CenterRole.objects.create(user=actor.user, center=world.other_center, group=groups["Viewer"])
    _, theirs = rows["centers.Rate"]
    address = reverse("admin:centers_rate_changelist")
    listed = actor.client.get(address).context["cl"].formset
    index = next(n for n, form in enumerate(listed.forms) if form.instance.pk == theirs.pk)
    fields = {"form-TOTAL_FORMS": len(listed.forms), "form-INITIAL_FORMS": len(listed.forms)}
    for number, form in enumerate(listed.forms):
        shown = {name: form[name].value() for name in form.fields}
        shown["id"] = form.instance.pk
        # A box that is not ticked is not sent, nor is what is empty.
        fields |= {f"form-{number}-{name}": each for name, each in shown.items() if each}
    fields |= {f"form-{index}-hourly": "1.00", "_save": "Save"}

    response = actor.client.post(address, fields)

    theirs.refresh_from_db()
    assert response.status_code == 403, response.context["cl"].formset.errors
    assert theirs.hourly != 1


# --- People -----------------------------------------------------------------------------------


STAFF_PAGES = ("accounts_user_change", "auth_user_password_change", "accounts_user_sign_out")


@pytest.mark.parametrize("actor", ["manager", "desk", "manager of A"], indirect=True)
@pytest.mark.parametrize("make_other", [StaffFactory, AdministratorFactory])
def test_only_superusers_change_staff_accounts(actor, make_other):
    other = make_other(email="colleague@example.com")
    before = User.objects.filter(pk=other.pk).values().get()

    for page in STAFF_PAGES:
        fields = {
            "email": "taken@example.com",
            "first_name": "Taken",
            "last_name": "Over",
            "usable_password": "true",
            "password1": "stormy-lighthouse-7",
            "password2": "stormy-lighthouse-7",
        }
        response = actor.client.post(reverse(f"admin:{page}", args=[other.pk]), fields)
        assert is_refused(response), page
    assert User.objects.filter(pk=other.pk).values().get() == before


@pytest.mark.parametrize("actor", ["manager"], indirect=True)
def test_only_superusers_grant_privileges(actor, world, groups):
    ada = world.ada
    response = actor.client.post(
        reverse("admin:accounts_user_change", args=[ada.pk]),
        {
            "email": ada.email,
            "first_name": "Augusta",
            "last_name": ada.last_name,
            "is_active": "on",
            "is_staff": "on",
            "is_superuser": "on",
            "groups": [groups["Manager"].pk],
        },
    )

    ada.refresh_from_db()
    assert response.status_code == 302
    assert ada.first_name == "Augusta"
    assert (ada.type, ada.groups.count()) == ("Account", 0)


@pytest.mark.parametrize("actor", ["viewer of A", "viewer"], indirect=True)
def test_viewer_sees_names_and_no_other_personal_data(actor, rows, world):
    pages = [
        reverse("admin:index"),
        reverse("admin:reservations_reservation_changelist"),
        reverse("admin:reservations_reservation_change", args=[world.reservation.pk]),
        reverse("admin:reservations_reservation_history", args=[world.reservation.pk]),
        reverse("admin:reservations_timeline"),
    ]
    for page in pages:
        response = actor.client.get(page)
        text = response.content.decode()
        assert response.status_code == 200, page
        for secret in (world.ada.email, world.ada.phone_number, "charles@example.com"):
            assert secret not in text, (page, secret)


def test_user_with_two_roles_has_each_only_at_its_center(client, world, groups):
    clerk = StaffFactory()
    CenterRole.objects.create(user=clerk, center=world.center, group=groups["Viewer"])
    CenterRole.objects.create(user=clerk, center=world.other_center, group=groups["Manager"])
    client.force_login(clerk)

    room = world.other_center.rooms.get()
    for center_room, status in ((world.room, 403), (room, 200)):
        address = reverse("admin:centers_meetingroom_change", args=[center_room.pk])
        assert client.get(address).status_code == 200
        assert client.post(address, {}).status_code == status
