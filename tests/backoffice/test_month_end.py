"""The report for the end of a month: cash, revenue, and what explains their difference (B18)."""

import datetime as dt
from decimal import Decimal

import pytest

from payments.gateways import GATEWAY_CLASSES
from payments.gateways.manual import MANUAL_GATEWAYS
from payments.models import Dispute, Payment, PaymentState, Refund, RefundState
from reservations.admin.reports import month_end
from reservations.admin.reports.cash import WAYS_OF_PAYMENT
from reservations.admin.reports.periods import ReportPeriod
from reservations.admin.reports.reconciliation import DifferenceLine
from reservations.admin.reports.selection import ReportSelection
from reservations.models.status import Status
from tests.backoffice.test_revenue import earned
from tests.factories_reservations import make_room

pytestmark = pytest.mark.django_db

MARCH = ReportPeriod(dt.date(2027, 3, 1), dt.date(2027, 3, 31))
FEBRUARY_DAY, MARCH_DAY, APRIL_DAY = (
    dt.datetime(2027, month, 10, 18, tzinfo=dt.UTC) for month in (2, 3, 4)
)


def meeting(amount, start=MARCH_DAY, **fields):
    return earned(amount, "0.00", start=start, **fields)


def captured(row, at, amount=None, gateway="stripe", **fields):
    return Payment.objects.create(
        reservation=row,
        gateway=gateway,
        cash_center=fields.pop("cash_center", row.room.center),
        amount=Decimal(amount or row.total_cost),
        currency="USD",
        lease_until=FEBRUARY_DAY,
        created_at=FEBRUARY_DAY,
        authorized_at=FEBRUARY_DAY,
        captured_at=at,
        **{"state": PaymentState.CAPTURED if at else PaymentState.AUTHORIZED, **fields},
    )


def refunded(payment, amount, at, state=RefundState.DONE, **fields):
    done_at = None if state == RefundState.STARTED else at
    return Refund.objects.create(
        payment=payment,
        amount=Decimal(amount),
        state=state,
        created_at=FEBRUARY_DAY,
        done_at=done_at,
        **fields,
    )


def build(period=MARCH, **selection):
    """The report as a dictionary of tables, each with its rows by their labels."""
    report = month_end.build_report(ReportSelection(period, **selection))
    return {table.key: table for table in report.tables}


def get_lines(tables):
    """The amounts of the difference that are not 0, by the words of their lines."""
    amounts = dict(tables["difference"].rows) | dict([tables["difference"].total])
    return {words: str(amount) for words, amount in amounts.items() if amount}


def test_payments_and_refunds_of_other_months_are_explained():
    captured(meeting("1.00"), MARCH_DAY)
    captured(meeting("2.00"), FEBRUARY_DAY)
    captured(meeting("4.00"), APRIL_DAY)
    captured(meeting("8.00", FEBRUARY_DAY), MARCH_DAY)
    captured(meeting("16.00", APRIL_DAY), MARCH_DAY)
    for start in (MARCH_DAY, FEBRUARY_DAY, APRIL_DAY):
        cancelled = meeting("100.00", start, status=Status.CANCELLED, refund_promised="30.00")
        payment = captured(cancelled, FEBRUARY_DAY)
        refunded(payment, "10.00", FEBRUARY_DAY)
        refunded(payment, "5.00", MARCH_DAY)
        refunded(payment, "15.00", APRIL_DAY)

    assert get_lines(build()) == {
        # The fee of the cancelled meeting in March is 70.
        "Revenue of the meetings of the period": "77.00",
        DifferenceLine.PAID_BEFORE: "-102.00",
        DifferenceLine.PAID_AFTER: "-4.00",
        DifferenceLine.REFUNDED_BEFORE: "10.00",
        DifferenceLine.REFUNDED_AFTER: "15.00",
        DifferenceLine.PAID_FOR_EARLIER: "8.00",
        DifferenceLine.REFUNDED_FOR_EARLIER: "-5.00",
        DifferenceLine.PAID_FOR_LATER: "16.00",
        DifferenceLine.REFUNDED_FOR_LATER: "-5.00",
        "Cash of the period": "10.00",
    }


def test_money_that_has_not_moved_is_explained():
    captured(meeting("1.00"), None)
    reduced = captured(meeting("18.00", reduced_by="2.00"), MARCH_DAY, "20.00")
    refunded(reduced, "2.00", None, RefundState.STARTED)
    refused = captured(meeting("36.00", reduced_by="4.00"), MARCH_DAY, "40.00")
    refunded(refused, "4.00", MARCH_DAY, RefundState.REFUSED)
    promised = meeting("80.00", status=Status.CANCELLED, refund_promised="80.00")
    refunded(captured(promised, MARCH_DAY), "80.00", MARCH_DAY, RefundState.REFUSED)
    declined = meeting("160.00", status=Status.DECLINED)
    refunded(captured(declined, MARCH_DAY), "160.00", APRIL_DAY)
    twice = meeting("320.00")
    first = captured(twice, MARCH_DAY, state=PaymentState.REFUNDED)
    refunded(first, "320.00", MARCH_DAY, RefundState.REFUSED)
    lost = captured(twice, MARCH_DAY)
    Dispute.objects.create(
        payment=lost,
        reference="d1",
        amount="320.00",
        currency="USD",
        status="lost",
        opened_at=FEBRUARY_DAY,
        closed_at=MARCH_DAY,
    )

    tables = build()

    assert get_lines(tables) == {
        "Revenue of the meetings of the period": "375.00",
        DifferenceLine.NOT_CAPTURED: "-1.00",
        DifferenceLine.REFUND_DUE: "2.00",
        DifferenceLine.REFUND_OWED: "84.00",
        DifferenceLine.PAID_WITHOUT_BOOKING: "160.00",
        DifferenceLine.FAILED_ATTEMPT: "320.00",
        DifferenceLine.DISPUTES: "-320.00",
        "Cash of the period": "620.00",
    }
    assert "unexplained" not in tables
    by_line = {(line, reservation) for line, reservation, _ in tables["reservations"].rows}
    assert (DifferenceLine.REFUND_OWED, str(promised.pk)) in by_line


def test_payments_on_account_are_cash_when_they_are_received():
    for amount, received_at in (("1.00", None), ("2.00", MARCH_DAY), ("4.00", APRIL_DAY)):
        row = meeting(amount, reduced_by="100.00")
        payment = captured(
            row, FEBRUARY_DAY, row.total_cost + 100, gateway="account", received_at=received_at
        )
        # Before the money came in, so that less of it came in.
        refunded(payment, "100.00", FEBRUARY_DAY)
    returned = captured(
        *(meeting("8.00", reduced_by="8.00"), FEBRUARY_DAY, "16.00"),
        gateway="account",
        received_at=FEBRUARY_DAY,
    )
    refunded(returned, "8.00", MARCH_DAY)

    tables = build()

    assert get_lines(tables) == {
        "Revenue of the meetings of the period": "15.00",
        DifferenceLine.PAID_BEFORE: "-16.00",
        DifferenceLine.PAID_AFTER: "-4.00",
        DifferenceLine.RECEIVABLE: "-1.00",
        "Cash of the period": "-6.00",
    }
    [row] = tables["way"].rows
    assert [str(cell) for cell in row] == [
        *("On account", "1", "2.00", "8.00", "0.00", "0.00", "-6.00")
    ]


def test_fees_reduce_the_cash_on_the_day_of_their_movement():
    """The fee of a dispute counts when it is closed, also if it is won."""
    row = meeting("100.00", reduced_by="7.00")
    payment = captured(row, FEBRUARY_DAY, "107.00", fee="3.00")
    refunded(payment, "5.00", MARCH_DAY, fee="0.10")
    refunded(payment, "2.00", MARCH_DAY)  # Its fee is not known.
    for number, (status, closed_at) in enumerate(
        (("won", MARCH_DAY), ("lost", APRIL_DAY), ("needs_response", None))
    ):
        Dispute.objects.create(
            payment=payment,
            reference=f"d{number}",
            amount="100.00",
            currency="USD",
            status=status,
            fee="15.00",
            opened_at=FEBRUARY_DAY,
            closed_at=closed_at,
        )

    report = month_end.build_report(ReportSelection(MARCH))

    tables = {table.key: table for table in report.tables}
    assert get_lines(tables) == {
        "Revenue of the meetings of the period": "100.00",
        DifferenceLine.PAID_BEFORE: "-107.00",
        DifferenceLine.FEES: "-15.10",
        "Cash of the period": "-22.10",
    }
    [figure] = [each for each in report.figures if each.label == "Fees"]
    assert (figure.value, figure.note) == ("$15.10", "1 not known")
    assert (
        get_lines(build(ReportPeriod(dt.date(2027, 2, 1), dt.date(2027, 2, 28))))[
            DifferenceLine.FEES
        ]
        == "-3.00"
    )


def test_every_gateway_has_a_way_of_payment():
    assert {*GATEWAY_CLASSES, *MANUAL_GATEWAYS} <= set(WAYS_OF_PAYMENT)


def test_cash_is_attributed_to_the_local_day_the_center_and_the_way():
    """31 March 23:30 in Denver is 1 April in UTC and in Auckland."""
    late = dt.datetime(2027, 4, 1, 5, 30, tzinfo=dt.UTC)
    denver, auckland = make_room(), make_room(time_zone_id="Pacific/Auckland")
    captured(meeting("1.00", room=auckland), late)
    payment = captured(meeting("2.00", room=denver), late, fee="0.20")
    refunded(payment, "0.50", late, RefundState.OUTSIDE)
    captured(meeting("4.00", room=denver), late - dt.timedelta(days=1), gateway="sandbox")

    tables = build()

    name, days = denver.center.name, (dt.date(2027, 3, 30), dt.date(2027, 3, 31))
    assert [[str(cell) for cell in row] for row in tables["cash"].rows] == [
        [f"{days[0]}", name, "Card (sandbox)", "1", "4.00", "0.00", "0.00", "0.00", "4.00"],
        [f"{days[1]}", name, "Card (Stripe)", "1", "2.00", "0.00", "0.00", "0.20", "1.80"],
        [f"{days[1]}", name, "Refunded manually", "0", "0.00", "0.50", "0.00", "0.00", "-0.50"],
    ]
    for key in ("way", "day", "center", "cash"):
        assert tables[key].total[-1] == Decimal("5.30")
        assert sum(row[-1] for row in tables[key].rows) == Decimal("5.30")
    assert get_lines(tables)[DifferenceLine.PAID_AFTER] == "-1.00"


def test_cash_stays_at_the_center_of_the_capture_when_the_booking_moves():
    """31 March 23:30 in Denver is 1 April in Auckland, where the booking is now."""
    late = dt.datetime(2027, 4, 1, 5, 30, tzinfo=dt.UTC)
    denver, auckland = make_room(), make_room(time_zone_id="Pacific/Auckland")
    payment = captured(
        meeting("6.00", room=auckland, reduced_by="4.00"),
        *(late, "10.00"),
        cash_center=denver.center,
        fee="1.00",
    )
    refunded(payment, "4.00", late)
    captured(meeting("20.00", room=auckland), MARCH_DAY)

    here = build(centers=frozenset([denver.center_id]))
    there = build(centers=frozenset([auckland.center_id]))
    everywhere = build()

    assert get_lines(here) == {
        DifferenceLine.FOR_OTHER_CENTER: "6.00",
        DifferenceLine.FEES: "-1.00",
        "Cash of the period": "5.00",
    }
    assert get_lines(there) == {
        "Revenue of the meetings of the period": "26.00",
        DifferenceLine.AT_OTHER_CENTER: "-6.00",
        "Cash of the period": "20.00",
    }
    assert get_lines(everywhere) == {
        "Revenue of the meetings of the period": "26.00",
        DifferenceLine.FEES: "-1.00",
        "Cash of the period": "25.00",
    }
    assert [str(row[-1]) for row in everywhere["center"].rows] == ["20.00", "5.00"]
    assert not any("unexplained" in tables for tables in (here, there, everywhere))


def test_payments_that_contradict_the_revenue_are_unexplained():
    unpaid = meeting("1.00")
    wrong = captured(meeting("2.00"), MARCH_DAY, "5.00").reservation
    captured(meeting("4.00"), MARCH_DAY)

    tables = build()

    lines = get_lines(tables)
    assert (lines["Unexplained"], lines["Cash of the period"]) == ("2.00", "9.00")
    assert tables["unexplained"].rows == [
        (str(unpaid.pk), Decimal("-1.00")),
        (str(wrong.pk), Decimal("3.00")),
    ]
