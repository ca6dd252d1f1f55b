"""What has happened when an example begins: random steps alone rarely come so far.

A beginning has steps: the names of actions of one worker, and where a fault interrupts it. Each of
the directed ones leads to the edge of one rule of docs/checkout.md.
"""

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.payments.machine.points import Fault

# Names as in `MachineBase.do`, and the fault of the last of them.
# Of several actions, only the last one has the fault.
Step = tuple[str, Fault | None]
START_SOON, START_LATER = "2027-03-01T10:00:00", "2027-03-03T13:00:00"


@dataclass(frozen=True)
class Beginning:
    steps: tuple[Step, ...] = ()
    room: int = 0
    # In an hour, when it is too late for a free cancellation, or on the day after tomorrow.
    start: str = START_LATER
    card: str = "asks"


def undisturbed(names: str) -> Step:
    return names, None


PAID = undisturbed("checkout, confirm, checkout")
places = st.integers(1, 12)


def directed(**fields: object) -> st.SearchStrategy[Beginning]:
    return st.builds(Beginning, **{name: st.just(value) for name, value in fields.items()})


def with_fault(
    before: str, name: str, kind: str, after: str = "", *, meanwhile: str = "", **fields: object
) -> st.SearchStrategy[Beginning]:
    """An action that a fault interrupts at any place."""

    def build(place: int) -> Beginning:
        steps = [undisturbed(before)] if before else []
        steps.append((name, Fault(kind, place, meanwhile)))
        steps += [undisturbed(after)] if after else []
        return Beginning(tuple(steps), **fields)

    return places.map(build)


usual = st.builds(
    Beginning,
    steps=st.sampled_from(
        [
            (),
            (undisturbed("checkout"),),
            (undisturbed("checkout, confirm"),),
            (undisturbed("checkout, ten minutes, checkout, ten minutes"),),
            (PAID,),
            (undisturbed("open setup, enter card"),),
        ]
    ),
    room=st.sampled_from([0, 0, 1]),
    start=st.sampled_from([START_SOON, START_LATER]),
    # Half of the cards ask for a confirmation, and a third are good.
    card=st.sampled_from(["asks", "good", "asks", "asks, then declines", "declines", "good"]),
)

DIRECTED = {
    "the customer confirms what is called off": with_fault(
        "checkout, a quarter", "reconcile", "overtaken", meanwhile="confirm, checkout", room=1
    ),
    "the first Checkout dies, and a later one waits": with_fault(
        "", "checkout", "dies", "ten minutes, checkout, ten minutes, reconcile"
    ),
    "nobody asks until the meeting": directed(
        steps=(undisturbed("checkout, confirm, an hour, checkout"),), start=START_SOON
    ),
    "a booking is cancelled late": directed(
        steps=(PAID, undisturbed("a quarter, a quarter, cancel")), start=START_SOON, card="good"
    ),
    "a booking is cancelled after its start": directed(
        steps=(PAID, undisturbed("an hour, cancel")), start=START_SOON, card="good"
    ),
    "a cancellation dies while it refunds": with_fault(
        PAID[0], "cancel", "dies", "two minutes, reconcile", card="good"
    ),
    "the gateway is silent during a cancellation": with_fault(
        PAID[0], "cancel", "silent", card="good"
    ),
    "a request is expired too early": directed(
        steps=(undisturbed("checkout, confirm, checkout, expire"),), room=1, card="good"
    ),
    "an old setup ends after a newer card was saved": directed(
        steps=(undisturbed("open setup, enter card, half a minute, save card, an hour, reconcile"),)
    ),
    "a setup is never finished": directed(steps=(undisturbed("open setup, an hour, reconcile"),)),
    "a setup completes twice": with_fault(
        "open setup, enter card", "complete setup", "overtaken", meanwhile="complete setup"
    ),
}
any_beginning = st.one_of(
    usual, usual, st.sampled_from(sorted(DIRECTED)).flatmap(DIRECTED.__getitem__)
)
