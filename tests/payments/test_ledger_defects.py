"""Planted defects of posting: each leaves something that verify_integrity names."""

import datetime as dt
from collections import Counter
from dataclasses import replace

import pytest

from payments import fees, gateway_results, refunds
from payments.ledger import balances, facts, posting
from payments.ledger.accounts import Account
from payments.models import Payment
from reservations.booking import cancellation, integrity, price_adjustments
from reservations.models import querysets
from roombook.money import to_hundredths
from tests.factories_reservations import HOUR, NOW, make_room
from tests.payments.test_ledger import START, Scene

pytestmark = [pytest.mark.django_db, pytest.mark.time_machine(NOW, tick=False)]


def post_nothing(original, *args, **kwargs):
    pass


def post_twice(original, *args, **kwargs):
    original(*args, **kwargs)
    original(*args, **kwargs)


def write(change):
    """Change the lines that are written."""

    def broken(original, lines, zones, *args, **kwargs):
        changed = {}
        for key, line in lines.items():
            new_key, new_line = change(key, line)
            changed[new_key] = new_line
            zones.setdefault(new_key[0], "UTC")
        original(changed, zones, *args, **kwargs)

    return broken


def negate(key, line):
    return key, Counter({account: -amount for account, amount in line.items()})


def go_to_another_center(key, line):
    return (make_room().center_id, *key[1:]), line


def be_on_the_next_day(key, line):
    center, is_test, day = key
    return (center, is_test, day and day + dt.timedelta(days=1)), line


def be_a_test(key, line):
    return (key[0], not key[1], key[2]), line


def take_no_tax(original, bill, kept):
    return 0


def take_cash_for_all(original, movements, *args):
    original(movements, *args)
    movements.account = Account.CASH


def forget_fees(original, movements, *args):
    original(movements, *args)
    movements.fees = 0


def take_the_fee_of_another(original, movements, payment, *args):
    original(movements, payment, *args)
    other = Payment.objects.exclude(pk=payment.pk).get()
    movements.fees = to_hundredths(other.fee)


def keep_the_tax_of_the_old_rate(original, rows):
    bill = original(rows)
    lines = Counter(bill.lines)
    too_little = bill.tax // 2
    lines.update({Account.TAX_PAYABLE: too_little, Account.ROOM: -too_little})
    return replace(bill, lines=lines)


DEFECTS = {
    "the capture is missing": (gateway_results, "post_payment", post_nothing),
    "the capture is posted twice": (gateway_results, "post_payment", post_twice),
    "the cancellation is not reversed": (cancellation, "post", post_nothing),
    "the price is not adjusted": (price_adjustments, "post", post_nothing),
    "the refund is missing": (refunds, "post", post_nothing),
    "the fee is missing": (fees, "post", post_nothing),
    "the wrong sign": (posting, "_write", write(negate)),
    "the wrong center": (posting, "_write", write(go_to_another_center)),
    "the wrong day": (posting, "_write", write(be_on_the_next_day)),
    "live money is a test": (posting, "_write", write(be_a_test)),
    "no tax of the fee": (balances, "_get_tax", take_no_tax),
    "the wrong account": (facts.Movements, "__init__", take_cash_for_all),
    "no fee in the facts": (facts.Movements, "__init__", forget_fees),
    "the fee of another payment": (facts.Movements, "__init__", take_the_fee_of_another),
    "the tax of the old rate": (querysets, "_build_bill", keep_the_tax_of_the_old_rate),
}


def play():
    return Scene().book().fetch_fees().change(to="Boulder", days=1).adjust(-10).cancel(refund=20)


def find_problems():
    return [str(each) for each in integrity.find_problems(now=START - HOUR)]


def test_story_without_a_defect_has_no_problem():
    play()

    assert find_problems() == []


@pytest.mark.parametrize("name", DEFECTS)
def test_planted_defect_of_posting_is_found_with_its_reservation(monkeypatch, name):
    other = Scene(hours=3)
    other.book()
    other.fetch_fees()
    owner, function, replacement = DEFECTS[name]
    original = getattr(owner, function)
    with monkeypatch.context() as planted:
        planted.setattr(owner, function, lambda *args, **kw: replacement(original, *args, **kw))
        story = play()

    found = [line for line in find_problems() if "ledger" in line]
    assert found
    assert all(f"reservation {story.booking.pk}:" in line for line in found)
