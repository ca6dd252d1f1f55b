"""Who sees and does what in the back office (B18): its rules for every role, its pages for a few.

The pages are not listed here to be called: they are found by walking the site's addresses, so that
one that is new fails until a table below says who may open it. Rows of center A are everybody's at
A; staff with a role at A only never see anything of center B.
"""

import itertools
from copy import deepcopy

import pytest
import time_machine
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.test import RequestFactory
from django.urls import URLResolver, reverse

from accounts.models import CenterRole, User
from centers.models import MeetingRoom
from reservations.desk.actions import ACTIONS
from tests.admin_forms import form_of
from tests.backoffice.reading import messages_of
from tests.backoffice.role_tables import (
    ACTORS,
    AT_CENTERS,
    CENTER,
    CHANGED_EVERYWHERE_ONLY,
    EVERYWHERE,
    FOREIGN,
    IMPORTED,
    MODELS,
    OF_A_MODEL,
    OPEN,
    PAGES,
    POWER,
    SHARED,
    STAFF_PAGES,
    Actor,
    is_refused,
    judge,
    rows_of,
)
from tests.factories_people import AdministratorFactory, StaffFactory
from tests.world import NOW, World

pytestmark = pytest.mark.django_db


# --- Who, and what there is -------------------------------------------------------------------


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


STAFF = [name for name in ACTORS if name not in ("customer", "nobody")]
AT_A = [name for name, (_, at_a) in ACTORS.items() if at_a]
# A manager sees all rows at A that anybody does. The pages of others follow the rules that
# test_model_permissions_are_those_of_the_role asks.
VISITORS = ["manager of A", "administrator", "customer", "nobody"]
# A request for each thing that they may not do, too.
OUTSIDERS = ("customer", "nobody")
# The administrator of the other tests opens all pages.
every_actor = pytest.mark.parametrize(
    "actor", [*AT_A, "manager", "staff without a role", *OUTSIDERS], indirect=True
)
at_a = pytest.mark.parametrize("actor", AT_A, indirect=True)


def walk(patterns):
    for each in patterns:
        if isinstance(each, URLResolver):
            yield from walk(each.url_patterns)
        else:
            yield each


def test_every_registered_model_and_url_of_the_back_office_is_in_a_table():
    assert {model._meta.label for model in admin.site._registry} == set(MODELS)
    known = {*OPEN, *PAGES}
    for label in MODELS:
        known |= {f"{label.lower().replace('.', '_')}_{page}" for page in OF_A_MODEL}
    for name in IMPORTED:
        known |= {f"{name}_{page}" for page in ("import", "process_import", "list_export")}
    # Without a name: Django's redirect of an object, and the catch-all.
    assert {each.name for each in walk(admin.site.urls[0]) if each.name} - known == set()


# --- Pages of each model ----------------------------------------------------------------------


@pytest.mark.parametrize("actor", STAFF, indirect=True)
def test_model_permissions_are_those_of_the_role(actor, rows):
    """What decides about the pages of a model, without a page: for every role and every model."""
    request = RequestFactory().get("/")
    request.user = User.objects.get(pk=actor.user.pk)
    for model, page in admin.site._registry.items():
        label = model._meta.label
        listed = page.get_queryset(request)
        may_do = {"change": page.has_change_permission, "delete": page.has_delete_permission}
        may_add = page.has_add_permission(request)
        assert actor.changes(label, "a", "add") or not may_add, (label, actor.name)
        for which, row in zip("ab", rows[label], strict=True):
            is_listed = listed.filter(pk=row.pk).exists()
            is_seen = is_listed and page.has_view_or_change_permission(request, row)
            assert is_seen == actor.sees(label, which), (label, which, actor.name)
            for action, is_permitted in may_do.items():
                is_allowed = is_listed and is_permitted(request, row)
                assert actor.changes(label, which, action) or not is_allowed, (label, which, action)


@pytest.mark.parametrize("actor", VISITORS, indirect=True)
def test_model_pages_show_only_permitted_rows(actor, rows):
    for label, both in rows.items():
        if actor.is_root and MODELS[label] not in (EVERYWHERE, POWER):
            continue  # The pages are those that roles see.
        name = "admin:" + label.lower().replace(".", "_")
        response = actor.client.get(reverse(f"{name}_changelist"))
        judge(actor, response, actor.sees(label, "a"), f"list of {label}")
        for which, row in actor.pick(both):
            if response.status_code == 200:
                seen = response.context["cl"].queryset.filter(pk=row.pk).exists()
                assert seen == actor.sees(label, which), (label, which, actor.name)
            for page in ("change", "history"):
                answer = actor.client.get(reverse(f"{name}_{page}", args=[row.pk]))
                judge(actor, answer, actor.sees(label, which), f"{page} of {label} {which}")
            refused = actor.name in OUTSIDERS or which == "b"
            if refused and not actor.changes(label, which, "delete"):
                address = reverse(f"{name}_delete", args=[row.pk])
                judge(actor, actor.client.get(address), False, f"delete of {label} {which}")
            if refused and not actor.changes(label, which):
                address = reverse(f"{name}_change", args=[row.pk])
                answer = actor.client.post(address, {"_save": "1"})
                if answer.status_code != 405:
                    judge(actor, answer, False, f"change of {label} {which}")
        if actor.name in OUTSIDERS and not actor.changes(label, "a", "add"):
            judge(actor, actor.client.get(reverse(f"{name}_add")), False, f"add {label}")
            answer = actor.client.post(reverse(f"{name}_add"), {})
            judge(actor, answer, False, f"add {label} by POST")


@every_actor
def test_custom_pages_require_their_permission(actor, rows, world):
    both = (
        (world.center, world.room, world.ada),
        (world.other_center, world.other_center.rooms.get(), world.bob),
    )
    for name, (permission, where) in PAGES.items():
        for which, (center, room, customer) in actor.pick(both):
            args, query, method = [], {}, actor.client.get
            if name.startswith(("accounts_user_", "auth_user_")):
                args = [customer.pk]
                method = actor.client.post if name.endswith("export") else method
            elif name == "reservations_webhookendpoint_credentials":
                args = [rows["reservations.WebhookEndpoint"]["ab".index(which)].pk]
            elif name == "reservations_report":
                args, query = ["revenue"], {"center": center.pk}
            elif name.endswith("_list_export"):
                args = ["csv"]
            elif name.startswith(("reservations_reservation_receipts", "reservations_receipt_f")):
                receipt = rows["reservations.Receipt"]["ab".index(which)]
                args = [receipt.reservation_id, receipt.number][: 1 + name.endswith("_file")]
            elif name == "centers_rate_examples":
                method = actor.client.post
            elif name == "reservations_draft_preview":
                method, query = actor.client.post, {"center": center.pk, "room": room.pk}
            elif name == "reservations_draft_customers":
                query = {"term": "foreign"}
            elif name == "reservations_reservation_action":
                continue  # test_reservation_actions_require_their_permission
            elif name not in ("centers_time_zone", "centers_closure_holidays"):
                query = {"center": center.pk, "room": room.pk}
            allowed = actor.has(permission, where)
            if name == "reservations_receipt_file" and allowed:
                continue  # test_receipts.py opens it: to make it takes a second.
            response = method(reverse(f"admin:{name}", args=args), query)
            if which == "b" and actor.at_a and is_refused(response):
                continue
            judge(actor, response, allowed, f"{name} {which}")


@every_actor
def test_reservation_actions_require_their_permission(actor, rows):
    for which, row in actor.pick(rows["reservations.Reservation"]):
        for name, step in ACTIONS.items():
            address = reverse("admin:reservations_reservation_action", args=[row.pk, name])
            allowed = actor.has(step.permission) and actor.sees("reservations.Reservation", which)
            judge(actor, actor.client.get(address), allowed, f"step {name} {which}")
            if not allowed:
                answer = actor.client.post(address, {"confirmed": "yes"})
                judge(actor, answer, False, f"step {name} {which} by POST")


@every_actor
def test_import_and_export_pages_require_their_permission(actor, rows):
    for name in IMPORTED:
        app, model = name.split("_")
        label = next(each for each in MODELS if each.lower() == f"{app}.{model}")
        change, view = f"{app}.change_{model}", f"{app}.view_{model}"
        shared = label in CHANGED_EVERYWHERE_ONLY
        where = EVERYWHERE if shared else CENTER
        may_import = actor.has(change, where)
        reported = actor.has(view, where) and actor.has("reservations.see_reports", where)
        may_export = actor.has(change, where) or reported
        judge(actor, actor.client.get(reverse(f"admin:{name}_import")), may_import, name)
        if not may_import:
            response = actor.client.post(reverse(f"admin:{name}_process_import"))
            assert is_refused(response), (name, actor.name)
        response = actor.client.get(reverse(f"admin:{name}_list_export", args=["csv"]))
        judge(actor, response, may_export, f"export of {name}")


# --- Actions, boxes and forged rows -----------------------------------------------------------


def snapshot(rows, which):
    """All columns of the rows of a center."""
    return {
        label: type(both[which]).objects.filter(pk=both[which].pk).values().get()
        for label, both in rows.items()
    }


@pytest.mark.parametrize("actor", ["viewer of A", "manager of A", "nobody"], indirect=True)
def test_list_actions_change_only_permitted_rows(actor, rows):
    before_a, before_b = snapshot(rows, 0), snapshot(rows, 1)
    request = RequestFactory().get("/")
    for model, page in admin.site._registry.items():
        label = model._meta.label
        names = {name for _, name, _ in page._get_base_actions()}
        if actor.name not in OUTSIDERS:
            # Django refuses any other.
            request.user = User.objects.get(pk=actor.user.pk)
            names &= page.get_actions(request).keys()
        for name in sorted(names):
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
def test_autocomplete_offers_no_row_of_another_center(actor, rows, world):
    address = reverse("admin:autocomplete")
    for model, page in admin.site._registry.items():
        for owner in (page, *(inline(model, admin.site) for inline in page.inlines)):
            for field in owner.autocomplete_fields:
                opts = owner.model._meta
                related = opts.get_field(field).related_model._meta.label
                query = {"app_label": opts.app_label, "model_name": opts.model_name}
                query |= {"field_name": field, "term": "foreign"}
                response = actor.client.get(address, query)
                assert response.status_code in (200, 403), (opts.label, field)
                text = response.text.lower()
                assert FOREIGN.lower() not in text or MODELS[related] == SHARED, text
    # Nor a customer by the full address: the page of a new reservation asks for it in a box of
    # its own, and tells no name.
    query = {"app_label": "reservations", "model_name": "reservation", "field_name": "user"}
    response = actor.client.get(address, {**query, "term": world.bob.email})
    if actor.has("accounts.view_user"):
        assert response.json()["results"] == []
    else:
        assert response.status_code == 403


@pytest.mark.parametrize("label", AT_CENTERS)
@pytest.mark.parametrize("actor", ["manager of A"], indirect=True)
def test_manager_cannot_move_rows_to_another_center(actor, rows, world, label):
    ours, theirs = rows[label]
    name = "admin:" + label.lower().replace(".", "_")
    change = reverse(f"{name}_change", args=[ours.pk])
    form = form_of(actor.client.get(change))
    fields = {key: value for key, value in form.items() if value and "-" not in key}
    fields |= {"name": "Forged", "price_lists-TOTAL_FORMS": 0, "price_lists-INITIAL_FORMS": 0}
    if label == "centers.PriceList":
        fields |= {"starts": "0:00", "ends": "9:00"}
    path = "rate__center" if label == "centers.PriceList" else "center"
    there = type(ours).objects.filter(**{path: world.other_center})
    before = there.count()
    ours_at, theirs_at = (
        {"rate": rate.pk} if label == "centers.PriceList" else {"center": center.pk}
        for rate, center in zip(
            rows["centers.Rate"], (world.center, world.other_center), strict=True
        )
    )

    added = actor.client.post(reverse(f"{name}_add"), fields | theirs_at)
    # 302: the pages of rooms, services, rates and terms ignore another center.
    moved = actor.client.post(change, fields | theirs_at | {"name": "Moved"})
    changed = actor.client.post(reverse(f"{name}_change", args=[theirs.pk]), fields | theirs_at)

    assert added.status_code in (200, 403)
    assert moved.status_code in (200, 302, 403)
    assert is_refused(changed)
    assert there.count() == before
    good = actor.client.post(reverse(f"{name}_add"), fields | ours_at)
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


@pytest.mark.parametrize("actor", ["manager", "desk", "manager of A"], indirect=True)
def test_only_superusers_change_staff_accounts(actor):
    fields = {
        "email": "taken@example.com",
        "first_name": "Taken",
        "last_name": "Over",
        "usable_password": "true",
        "password1": "stormy-lighthouse-7",
        "password2": "stormy-lighthouse-7",
    }
    for other in (StaffFactory(), AdministratorFactory()):
        before = User.objects.filter(pk=other.pk).values().get()
        for page in STAFF_PAGES:
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
            **dict.fromkeys(("is_active", "is_staff", "is_superuser"), "on"),
            "credit_limit": "0",
            "groups": [groups["Manager"].pk],
        },
    )

    ada.refresh_from_db()
    assert response.status_code == 302
    assert ada.first_name == "Augusta"
    assert (ada.type, ada.groups.count()) == ("Account", 0)


@pytest.mark.parametrize("actor", ["viewer of A", "viewer"], indirect=True)
def test_viewer_sees_names_and_no_other_personal_data(actor, rows, world):
    User.objects.filter(pk=world.ada.pk).update(company_name="Hidden Ltd")
    day = world.reservation.start.astimezone(world.center.zone).date()
    pages = [
        reverse("admin:index"),
        reverse("admin:reservations_reservation_changelist"),
        reverse("admin:reservations_reservation_change", args=[world.reservation.pk]),
        reverse("admin:reservations_reservation_history", args=[world.reservation.pk]),
        f"{reverse('admin:reservations_timeline')}?date={day}",
        f"{reverse('admin:reservations_room_week')}?room={world.room.pk}&date={day}",
        f"{reverse('admin:reservations_today')}?date={day}",
    ]
    # Scripts get the part of a page that they show.
    for page, script in itertools.product(pages, (None, {"X-Requested-With": "fetch"})):
        response = actor.client.get(page, headers=script)
        text = response.content.decode()
        assert response.status_code == 200, page
        for hidden in (
            *(world.ada.email, world.ada.phone_number, "charles@example.com"),
            *("/step/", "reservation/add/?room"),
            *(["Hidden Ltd"] if "timeline" in page else []),
        ):
            assert hidden not in text, (page, hidden)


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
    data = {"action": "take_out_of_service", ACTION_CHECKBOX_NAME: [world.room.pk, room.pk]}
    done = client.post(reverse("admin:centers_meetingroom_changelist"), data)
    assert "where you may not do this were skipped" in str(messages_of(done))
    assert list(MeetingRoom.objects.filter(is_blocked=True)) == [room]
