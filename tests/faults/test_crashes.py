"""A worker is killed at each step of every request that moves money or saves a card.

Afterwards the client's retry or `reconcile_payments` resolves it: what was requested is done and
paid once, or not at all. docs/checkout.md has the tables of the steps.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from operator import attrgetter
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from payments import setups
from payments.gateways.sandbox import confirm_payment
from payments.gateways.sandbox_models import SandboxCard, SandboxPayment, SandboxSetup
from payments.gateways.sandbox_setups import confirm_setup
from payments.models import Payment, PaymentSetup, SavedCard
from reservations.models import BookingChange, Reservation
from tests.factories_people import SavedCardFactory
from tests.factories_reservations import AllowanceFactory, PromoCodeFactory
from tests.faults import consistency, figures
from tests.faults.client import BROKEN_CONNECTION, Answer, retry_until_resolved, run_concurrently
from tests.faults.points import POINTS
from tests.faults.service import Service
from tests.faults.size import LEASE, LONG
from tests.faults.world import CARD, HOUR, Customer, World
from tests.payments.gateway_helpers import card


class Scene:
    """Customers with drafts and bookings of two hours, which cost 50, and a member of staff."""

    def __init__(self, service: Service) -> None:
        self.service = service
        with service.database.open():
            self.world = World(service)
            self.staff = self.world.staff_client()

    def draft(self, *, promo: bool = False, asks: bool = False, live: bool = True):
        """A customer with a draft; the customer's saved card may ask for a confirmation."""
        with self.service.database.open():
            customer = self.world.customer()
            if asks:
                SavedCardFactory(user=customer.user, outcome="requires_action", saved_by_setup=True)
            if promo:
                AllowanceFactory(user=customer.user, hours=1)
            code = PromoCodeFactory().code if promo else ""
            room = self.world.room(is_live_inventory=live)
            return customer, self.world.draft(customer, room, promo=code)

    def book(self, **options: bool):
        customer, draft = self.draft(**options)
        wanted = "Pending" if options.get("live") is False else "Confirmed"
        assert customer.client.checkout(draft.pk, CARD).code == wanted
        return customer, draft

    def confirm_at_bank(self, pk: int) -> None:
        with self.service.database.open():
            payment = Payment.objects.waiting().get(reservation=pk)
            assert payment.action_until > timezone.now()
            confirm_payment(SandboxPayment.objects.get(key=payment.key).secret)


# A reservation, and the request in which the worker is killed.
Attempt = tuple[int, Callable[[], Answer]]


def check_out(scene: Scene) -> Attempt:
    customer, draft = scene.draft(promo=True)
    return draft.pk, partial(customer.client.checkout, draft.pk, CARD)


def ask_bank(scene: Scene) -> Attempt:
    customer, draft = scene.draft(asks=True)
    fields = {"ReservationId": draft.pk, "UseSavedPaymentInfo": True}
    return draft.pk, partial(customer.client.post, "reservations/checkout", **fields)


def check_out_after_confirmation(scene: Scene) -> Attempt:
    pk, send = ask_bank(scene)
    assert send().code == "Processing"
    scene.confirm_at_bank(pk)
    return pk, send


def cancel_while_bank_waits(scene: Scene) -> Attempt:
    customer, draft = scene.draft(asks=True)
    fields = {"ReservationId": draft.pk, "UseSavedPaymentInfo": True}
    assert customer.client.post("reservations/checkout", **fields).code == "Processing"
    return draft.pk, partial(customer.client.cancel, draft.pk)


def approve(scene: Scene) -> Attempt:
    _, draft = scene.book(live=False)
    return draft.pk, partial(scene.staff.run_action, "approve", draft.pk)


def cancel(scene: Scene, *, live: bool = True) -> Attempt:
    customer, draft = scene.book(live=live)
    return draft.pk, partial(customer.client.cancel, draft.pk)


def change(scene: Scene, *, hours: int = 3, asks: bool = False) -> Attempt:
    customer, draft = scene.book(asks=asks)
    method = {"UseSavedPaymentInfo": True} if asks else {"PaymentInfo": CARD}
    end = draft.start + hours * HOUR
    wanted = {"EndDate": end.isoformat(), "ExpectedTotal": hours * 25, **method}
    return draft.pk, partial(customer.client.change, draft.pk, **wanted)


def change_after_confirmation(scene: Scene) -> Attempt:
    pk, send = change(scene, asks=True)
    assert send().code == "Processing"
    scene.confirm_at_bank(pk)
    return pk, send


def extend_for_cash(scene: Scene) -> Attempt:
    _, draft = scene.book()
    end = (draft.start + 3 * HOUR).astimezone(ZoneInfo("America/Denver"))
    data = {"end_0": f"{end:%Y-%m-%d}", "end_1": f"{end:%H:%M}", "way": "cash"}
    return draft.pk, partial(scene.staff.extend, draft.pk, **data, expected_amount=75)


@dataclass(frozen=True)
class Way:
    """A kind of request: the steps at which it crashes, and its reservation's status and hours.

    After a crash at one of the steps `lost`, nothing is done unless somebody repeats the request.
    After one of the steps `kept`, it is done.
    """

    prepare: Callable[[Scene], Attempt]
    lost: list[str]
    kept: list[str]
    undone: tuple[str, int]
    done: tuple[str, int]
    # The refund in the response, if it has one.
    refund: int | None = None
    # In the short form, the client repeats only the requests that were killed here: what does most
    # after a crash. None: all of them.
    retried: list[str] | None = None
    # Whether the same request can be sent again after it was done.
    is_repeatable: bool = True

    @property
    def steps(self) -> list[str]:
        return self.lost + self.kept


CHARGED = ["in capture", "after the gateway's capture", "after capture"]
REFUNDED = ["after the gateway's refund", "after refund"]
BOOKED, LONGER, SHORTER = ("Confirmed", 2), ("Confirmed", 3), ("Confirmed", 1)
NEW, PENDING, CANCELLED = ("New", 2), ("Pending", 2), ("Cancelled", 2)
WAYS = {
    "checkout": Way(
        check_out,
        ["in T1", "after T1", "in authorize"],
        ["after authorize", "in T2", "after T2", *CHARGED],
        *(NEW, BOOKED),
    ),
    "confirmed checkout": Way(
        check_out_after_confirmation,
        [],
        ["after lookup", "in T2", "after T2", "after the gateway's capture"],
        *(NEW, BOOKED),
    ),
    "cancelling while the bank waits": Way(
        cancel_while_bank_waits, ["after the gateway's void"], [], *(NEW, CANCELLED)
    ),
    "approval": Way(approve, ["in approval"], ["after approval", *CHARGED], *(PENDING, BOOKED)),
    "cancelling a booking": Way(
        cancel,
        ["in cancel"],
        ["after cancel", "in capture", *REFUNDED],  # The refund takes the lock of the capture.
        *(BOOKED, CANCELLED),
        refund=50,
    ),
    "cancelling a request": Way(
        partial(cancel, live=False),
        ["in cancel"],
        ["after cancel", "after the gateway's void", "after void"],
        *(PENDING, CANCELLED),
        refund=0,
    ),
    "change": Way(
        change,
        ["in a change", "in T1 of a change", "after T1 of a change", "in authorize"],
        ["after authorize", "in T2 of a change", "after T2 of a change", *CHARGED],
        *(BOOKED, LONGER),
        retried=["after T1 of a change", "after authorize", "in capture"],
    ),
    "confirmed change": Way(
        change_after_confirmation,
        [],
        [
            *("after lookup", "in T2 of a change", "after T2 of a change"),
            "after the gateway's capture",
        ],
        *(BOOKED, LONGER),
        retried=["in T2 of a change"],
    ),
    "cheaper change": Way(
        partial(change, hours=1),
        ["in a change"],
        ["after cancel", *REFUNDED],  # "after cancel" is after the transaction of any change.
        *(BOOKED, SHORTER),
        retried=["after cancel"],
    ),
    # Staff take the difference in one transaction, and cannot extend it to the same end again.
    "change for cash": Way(
        extend_for_cash,
        ["in a change", "in taking a difference"],
        ["after cancel"],
        *(BOOKED, LONGER),
        is_repeatable=False,
    ),
}


def crash(service: Service, point: str, send: Callable[[], Answer]) -> Answer:
    """Kill the worker at the point, instead of getting an answer."""
    service.crash(point)
    answer = send()
    assert (service.has_crashed, answer.status) == (True, BROKEN_CONNECTION), point
    return answer


def crash_all(
    service: Service, way: Way, points: list[str], row: figures.CaseFigures
) -> dict[str, Attempt]:
    """Crash one request at each of the points."""
    scene = Scene(service)
    attempts = {point: way.prepare(scene) for point in points}
    for point, (_, send) in attempts.items():
        row.count_answers([crash(service, point, send)])
        row.runs += 1
    return attempts


def get_state(service: Service, pk: int) -> tuple[str, int]:
    with service.database.open():
        reservation = Reservation.objects.get(pk=pk)
        return reservation.status, (reservation.end - reservation.start) // HOUR


def count_captures(service: Service) -> int:
    with service.database.open():
        return consistency.count_captures()


@pytest.mark.parametrize("resolver", ["client retries", "reconcile_payments"])
@pytest.mark.parametrize("name", WAYS)
def test_request_that_crashed_is_done_once_or_not_at_all(
    name, resolver, short_lease_service, check_everything
):
    way, service, case = WAYS[name], short_lease_service, f"{name} crashes, {resolver}"
    row, is_retried = figures.get_row(case), resolver == "client retries"
    is_short = is_retried and not LONG and way.retried is not None
    points = way.retried if is_short else way.steps
    captured = count_captures(service)
    attempts = crash_all(service, way, points, row)
    if not is_retried:
        time.sleep(LEASE)
        # This also checks that what was captured, less refunds, is the price of each booking.
        check_everything(service, case)
        for point, (pk, _) in attempts.items():
            assert get_state(service, pk) == (way.done if point in way.kept else way.undone), point

    # All can be repeated, and nothing is charged or refunded twice.
    for point, (pk, send) in attempts.items():
        if way.is_repeatable or point in way.lost:
            received: list[Answer] = []
            answer = retry_until_resolved(send, received=received)
            row.count_answers(received)
            assert answer.status in {200, 302}, (point, answer)
            assert way.refund is None or answer.body.get("Refund", 0) == way.refund
        assert get_state(service, pk) == way.done, point
        row.confirmed += 1
    check_everything(service, case)
    row.captures += count_captures(service) - captured


def test_checkout_crash_is_resolved_by_parallel_retries(short_lease_service, check_everything):
    """All retries find the same unresolved payment, and one of them resolves it."""
    service, case = short_lease_service, "checkout crashes, 8 parallel retries"
    row, way = figures.get_row(case), WAYS["checkout"]
    points = way.steps if LONG else ["after T1", "after authorize"]
    for pk, send in crash_all(service, way, points, row).values():
        time.sleep(LEASE)
        answers = run_concurrently([send] * 8)
        row.count_answers(answers)
        # On a slow machine, a request may outlive its own lease: ReservationNotOpen.
        allowed = {"Confirmed", "Processing", "ReservationNotOpen"}
        assert {answer.code for answer in answers} <= allowed
        assert retry_until_resolved(send).code == "Confirmed"
        assert get_state(service, pk) == BOOKED

    check_everything(service, case)


# The first Checkout of a card that asks for a confirmation. The first two are for each commit.
BEFORE_CONFIRMATION = ["after authorize", "after T2", "in T1", "after T1"]


@pytest.mark.parametrize("point", BEFORE_CONFIRMATION if LONG else BEFORE_CONFIRMATION[:2])
def test_checkout_that_crashed_before_the_confirmation_waits_and_is_booked_once(
    point, short_lease_service, check_everything
):
    service, case = short_lease_service, "checkout of a card that asks crashes, client retries"
    row, scene = figures.get_row(case), Scene(short_lease_service)
    pk, send = ask_bank(scene)
    row.count_answers([crash(service, point, send)])
    time.sleep(LEASE)
    assert send().code == "Processing"

    scene.confirm_at_bank(pk)

    assert retry_until_resolved(send).code == "Confirmed"
    check_everything(service, case)


def test_reconcile_payments_reports_what_it_resolved(short_lease_service):
    """The command as an administrator runs it, in its own process."""
    _, send = check_out(Scene(short_lease_service))
    crash(short_lease_service, "after T2", send)

    done = short_lease_service.manage("reconcile_payments")

    assert (done.returncode, done.stderr) == (0, "")
    assert "1 captured" in done.stdout
    check = short_lease_service.manage("verify_integrity")
    assert (check.returncode, check.stdout) == (0, "")


@pytest.mark.parametrize("point", POINTS)
def test_point_is_a_function(point):
    module, path = POINTS[point]

    assert callable(attrgetter(path)(import_module(module)))


# --- Recovery of a change -------------------------------------------------------------------------


def crash_twice(service: Service) -> int:
    """A worker dies after the authorization, and the next one while it applies the change."""
    pk, send = change(Scene(service))
    crash(service, "after authorize", send)
    time.sleep(LEASE)
    crash(service, "in a change", send)
    return pk


def test_change_whose_recovery_crashes_is_applied_and_paid_once(
    short_lease_service, check_everything
):
    pk = crash_twice(short_lease_service)

    check_everything(short_lease_service, "recovery of a change crashes")

    assert get_state(short_lease_service, pk) == LONGER


@pytest.mark.skipif(not LONG, reason="the control is not for each commit: make faults")
def test_change_without_one_transaction_is_not_paid(start):
    """Negative control: the booking is changed in one transaction, and the change marked as applied
    in another one. So the recovery voids the payment of a change that was applied.
    """
    service = start(FAULTS_UNGUARDED="split changes", FAULTS_LEASE_SECONDS=str(LEASE))
    pk = crash_twice(service)

    with service.database.open():
        consistency.run_reconcile_payments()
        assert BookingChange.objects.get().state == "started"
        problems = consistency.find_problems()

    assert get_state(service, pk) == LONGER
    assert any("costs 75" in each and "50" in each for each in problems), problems


# --- Payment setups -------------------------------------------------------------------------------

NUMBER, LAST4 = "5555555555554444", "4444"
# The crash of Create payment setup, and that of Complete payment setup. The first is for each
# commit.
SETUP_CRASHES = [
    ("after the gateway's setup", "in saving a card"),
    ("after setup", "after lookup of setup"),
    ("after setup", "after the gateway's end of setup"),
    ("after the gateway's setup", "after saving a card"),
]


def make_customer(service: Service) -> Customer:
    """A customer with a saved card, which the new one replaces."""
    with service.database.open():
        customer = World(service).customer()
        former = SavedCardFactory.create(user=customer.user, saved_by_setup=True)
        SandboxCard.objects.filter(reference=former.reference).update(customer=customer.user.pk)
        return customer


def open_setup(service: Service, customer: Customer, point: str) -> Callable[[], Answer]:
    """Create a setup with a crash and a repetition, and enter a card.

    Returns the request that completes it.
    """
    send = partial(
        customer.client.post,
        "account/create-payment-setup",
        ReturnUrl="https://app.example.com/",
        key="the same request",
    )
    crash(service, point, send)
    setup_id = retry_until_resolved(send).body["PaymentSetup"]["Id"]
    with service.database.open():
        assert PaymentSetup.objects.filter(user=customer.user).count() == 1
        confirm_setup(SandboxSetup.objects.get(key=setup_id).secret, card(NUMBER))
    fields = {"PaymentSetupId": setup_id}
    return partial(customer.client.post, "account/complete-payment-setup", **fields)


def get_saved_digits(answer: Answer) -> str:
    return str(answer.body["SavedPaymentInfo"]["Last4DigitsOfCreditCardNumber"])


@pytest.mark.parametrize(("first", "second"), SETUP_CRASHES if LONG else SETUP_CRASHES[:1])
def test_card_of_a_setup_is_saved_once_after_crashes(guarded, check_everything, first, second):
    case = "payment setup crashes, app retries"
    figures.get_row(case).runs += 2
    customer = make_customer(guarded)
    complete = open_setup(guarded, customer, first)
    crash(guarded, second, complete)

    assert get_saved_digits(retry_until_resolved(complete)) == LAST4

    check_everything(guarded, case)
    with guarded.database.open():
        saved = SavedCard.objects.get(user=customer.user)
        stored = SandboxCard.objects.filter(customer=customer.user.pk)
        assert stored.filter(reference=saved.reference).exists()
        # The former card is deleted after the commit. If that is lost, it harms nobody.
        assert stored.count() == 1 + (second == "after saving a card")
        assert PaymentSetup.objects.get(user=customer.user).state == "succeeded"


def test_card_of_an_app_that_never_calls_again_is_saved_in_the_end(guarded):
    customer = make_customer(guarded)
    crash(guarded, "after lookup of setup", open_setup(guarded, customer, "after setup"))

    with guarded.database.open():
        rows = PaymentSetup.objects.filter(user=customer.user)
        rows.update(expires_at=timezone.now(), created_at=timezone.now() - setups.LIFETIME)
        # It must not replace a card that was saved after it, and the former one is older.
        SavedCard.objects.filter(user=customer.user).update(
            created_at=timezone.now() - 2 * setups.LIFETIME
        )
        consistency.run_reconcile_payments()
        assert SavedCard.objects.get(user=customer.user).last4 == LAST4


@pytest.mark.skipif(not LONG, reason="the control is not for each commit: make faults")
def test_setup_without_one_transaction_loses_the_card(start):
    """Negative control: the setup ends in a transaction of its own, before its card is saved."""
    service = start(FAULTS_UNGUARDED="yes")
    customer = make_customer(service)
    complete = open_setup(service, customer, "after setup")
    crash(service, "in saving a card", complete)

    assert get_saved_digits(retry_until_resolved(complete)) != LAST4
