"""Checkout, in the same five transactions as roombook's."""

import json
import uuid
from datetime import datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

from centers.span import Span
from reservations.notifications import confirmation
from tests.bench.raw.database import (
    JSONDict,
    Row,
    User,
    authenticate,
    fetch_all,
    get_cursor,
    transaction,
)
from tests.bench.raw.reservations import is_available, lock_room, release_conflicting_holds

MAIL = "<!DOCTYPE html><html><body>{text}" + "<p style='margin:0;padding:0'>&nbsp;</p>" * 100
CALENDAR = "BEGIN:VCALENDAR\r\nUID:{uid}\r\nDTSTART:{start}\r\nDTEND:{end}\r\nSUMMARY:{text}\r\n"
# The lines of the ledger, without promotions and included hours.
INSERT_BILL = """
    INSERT INTO payments_ledgerline (at, kind, cause, by_id, reservation_id, center_id, currency,
      is_test, day, meeting_day, bookings, receivables, room, setup, services, tax_payable)
    SELECT %s, 'booked', '', %s, %s, %s, 'USD', true, %s, %s, 1, 100 * sum(total),
      -100 * sum(total) FILTER (WHERE type = 'Room'),
      -100 * sum(total) FILTER (WHERE type = 'SetupFee'),
      -100 * sum(total) FILTER (WHERE type = 'Service'),
      -100 * sum(total) FILTER (WHERE type = 'Tax')
    FROM reservations_lineitem WHERE reservation_id = %s
"""
INSERT_PAID = """
    INSERT INTO payments_ledgerline (at, kind, cause, reservation_id, center_id, currency, is_test,
      day, bookings, gateway, receivables)
    SELECT %s, 'paid', %s, reservation_id, cash_center_id, 'USD', true,
      (captured_at AT TIME ZONE time_zone_id)::date, 0, 100 * %s, -100 * %s
    FROM payments_payment JOIN centers_center ON centers_center.id = cash_center_id
    WHERE payments_payment.id = %s
"""
INSERT_AUDIT_ENTRY = """
    INSERT INTO backoffice_auditentry (timestamp, action, content_type_id, object_id, object_name,
      changes, note, actor_id, actor_email)
    VALUES (%s, 1, (SELECT id FROM django_content_type
                    WHERE app_label = 'reservations' AND model = 'reservation'),
      %s, %s, %s, '', %s, '')
"""


def checkout(data: JSONDict, root: str, now: datetime) -> JSONDict:
    """Five transactions: claim the slot, authorize, book, capture, record the capture."""
    cur = get_cursor()
    user, _ = authenticate(cur, data, now)
    pk = data["ReservationId"]
    [(status, outcome, brand, last4)] = fetch_all(
        cur,
        """SELECT v.status, x.outcome, x.brand, x.last4 FROM reservations_reservation v
             LEFT JOIN payments_savedcard s ON s.user_id = v.user_id
             LEFT JOIN payments_sandboxcard x ON x.reference = s.reference
           WHERE v.id = %s AND v.user_id = %s
             AND make_date(s.exp_year, s.exp_month, 28) > %s""",
        (pk, user.pk, now),
    )
    assert (status, outcome) == ("New", "succeeds")
    key = uuid.uuid4()
    with transaction() as cur:
        payment, amount = claim(cur, user, pk, key, now)
    with transaction() as cur:
        cur.execute(
            """INSERT INTO payments_sandboxpayment (key, state, amount, currency, refunded, brand,
                 last4, message, description, outcome, secret, captures, created_at)
               VALUES (%s, 'authorized', %s, 'USD', 0, %s, %s, '', %s, '', '', 0, %s)""",
            (key, amount, brand, last4, f"Reservation {pk}", now),
        )
    with transaction() as cur:
        text = apply_authorization(cur, user, pk, payment, (key, amount, brand, last4), now)
    with transaction() as cur:
        cur.execute("SELECT FROM payments_sandboxpayment WHERE key = %s FOR UPDATE", (key,))
        cur.execute(
            "UPDATE payments_sandboxpayment SET state = 'captured', captures = 1"
            " WHERE key = %s AND state = 'authorized'",
            (key,),
        )
    with transaction() as cur:
        cur.execute("SELECT FROM payments_payment WHERE id = %s FOR UPDATE", (payment,))
        cur.execute(
            "UPDATE payments_payment SET state = 'captured', captured_at = %s"
            " WHERE id = %s AND state = 'authorized'",
            (now, payment),
        )
        cur.execute(INSERT_PAID, (now, f"payment {payment}", amount, amount, payment))
    return {"ConfirmationMessage": text, "IsLive": False, "Status": "Confirmed"}


def lock_reservation(cur: Any, pk: int) -> tuple[Any, Row]:
    [(room_id,)] = fetch_all(
        cur, "SELECT room_id FROM reservations_reservation WHERE id = %s", (pk,)
    )
    room = lock_room(cur, room_id)
    [row] = fetch_all(
        cur,
        """SELECT status, start, "end", total_cost, uid, calendar_sequence
           FROM reservations_reservation WHERE id = %s FOR NO KEY UPDATE""",
        (pk,),
    )
    return room, row


def claim(cur: Any, user: User, pk: int, key: uuid.UUID, now: datetime) -> tuple[int, Decimal]:
    room, (status, start, end, amount, *_) = lock_reservation(cur, pk)
    assert (status, start > now) == ("New", True)
    span = Span(start, end)
    release_conflicting_holds(cur, room, span, user=user, now=now, exclude=pk)
    assert is_available(cur, room, span, user=user, now=now, exclude=pk)
    [(uses, promotions)] = fetch_all(
        cur,
        """SELECT (SELECT json_agg(json_build_array(allowance_id, hours))
                   FROM reservations_allowanceuse WHERE reservation_id = %s AND hours > 0),
                  (SELECT count(*) FROM reservations_lineitem
                   WHERE reservation_id = %s AND type = 'Promotion')""",
        (pk, pk),
    )
    # The customers of the benchmark have neither.
    assert (promotions, uses) == (0, None)
    cur.execute(
        """INSERT INTO accounts_attemptwindow (scope, key, count, since)
           VALUES ('card-declined', %s, 1, %s) ON CONFLICT (scope, key) DO UPDATE
           SET count = accounts_attemptwindow.count + 1""",
        (str(user.pk), now),
    )
    cur.execute(
        """UPDATE reservations_reservation SET status = 'Processing', holds_slot = true,
             hold_until = NULL WHERE id = %s""",
        (pk,),
    )
    log_status_change(cur, user, pk, ["New", "Processing"], now)
    [(payment,)] = fetch_all(
        cur,
        """INSERT INTO payments_payment (reservation_id, key, gateway, is_live, amount, currency,
             state, reference, card_brand, card_last4, message, lease_until, is_called_off,
             created_at, purpose, is_by_link, has_unreported_decline, counts, reservation_uid,
             cash_center_id)
           VALUES (%s, %s, 'sandbox', false, %s, 'USD', 'started', '', '', '', '', %s, false, %s,
             'booking', false, false, false,
             (SELECT uid FROM reservations_reservation WHERE id = %s),
             (SELECT center_id FROM reservations_reservation
              JOIN centers_meetingroom ON centers_meetingroom.id = room_id
              WHERE reservations_reservation.id = %s))
           RETURNING id""",
        (pk, key, amount, now + timedelta(seconds=60), now, pk, pk),
    )
    return payment, amount


def apply_authorization(
    cur: Any, user: User, pk: int, payment: int, paid: tuple[Any, ...], now: datetime
) -> str:
    key, amount, brand, last4 = paid
    room, (status, start, end, _, uid, sequence) = lock_reservation(cur, pk)
    cur.execute("SELECT state FROM payments_payment WHERE id = %s FOR UPDATE", (payment,))
    assert (*cur.fetchone(), status) == ("started", "Processing")
    cur.execute(
        """UPDATE payments_payment SET state = 'authorized', counts = true, reference = %s,
             card_brand = %s, card_last4 = %s, authorized_at = %s WHERE id = %s""",
        (f"pay_{key.hex}", brand, last4, now, payment),
    )
    # All rooms of the benchmark are booked without an approval.
    cur.execute(
        """UPDATE reservations_reservation SET status = 'Confirmed', booked_at = %s,
             is_live = false, calendar_sequence = %s WHERE id = %s""",
        (now, sequence + 1, pk),
    )
    log_status_change(cur, user, pk, ["Processing", "Confirmed"], now)
    day, meeting_day = (each.astimezone(room.zone).date() for each in (now, start))
    cur.execute(INSERT_BILL, (now, user.pk, pk, room.center_id, day, meeting_day, pk))
    [(center,)] = fetch_all(cur, "SELECT name FROM centers_center WHERE id = %s", (room.center_id,))
    charged = SimpleNamespace(gateway="sandbox", amount=amount, card_brand=brand, card_last4=last4)
    room.center = SimpleNamespace(name=center, zone=room.zone)
    row = SimpleNamespace(
        pk=pk, paid_payments=[charged], start=start, end=end, total_cost=amount, room=room
    )
    text = f"You have booked {confirmation.describe_booking(row)} (reservation {pk})."
    text += f" {confirmation.describe_payments(row)}"
    lines = fetch_all(
        cur,
        "SELECT description, amount FROM reservations_lineitem WHERE reservation_id = %s",
        (pk,),
    )
    bill = "\n".join(f"{description}: {line}" for description, line in lines)
    calendar = CALENDAR.format(uid=uid, start=start, end=end, text=text)
    cur.execute(
        """INSERT INTO accounts_outboxmessage (key, user_id, "to", kind, about, subject, text,
             html, calendar, calendar_method, attachment_name, state, attempts, created_at,
             next_attempt_at, last_error)
           VALUES (%s, %s, %s, 'confirmed', %s, %s, %s, %s, %s, %s, '', 'waiting', 0, %s, %s,
             '')""",
        (
            *(uuid.uuid4(), user.pk, user.email, f"reservation {pk}", text[:200]),
            *(f"{text}\n\n{bill}", MAIL.format(text=text), calendar, "REQUEST", now, now),
        ),
    )
    cur.execute(
        "UPDATE accounts_attemptwindow SET count = count - 1"
        " WHERE count > 0 AND key = %s AND scope = 'card-declined'",
        (str(user.pk),),
    )
    return text


def log_status_change(cur: Any, user: User, pk: int, change: list[str], now: datetime) -> None:
    changes = json.dumps({"status": change})
    cur.execute(INSERT_AUDIT_ENTRY, (now, pk, f"Reservation {pk}", changes, user.pk))
