"""Load the demo into an empty database (B20)."""

import datetime as dt
from collections.abc import Callable, Iterator
from itertools import cycle

from django.core.files.base import ContentFile
from django.db.models import F

from accounts.models import OutboxMessage, User
from accounts.models.outbox_message import PAYMENT_LINK_KIND
from centers.models import (
    Center,
    CenterImage,
    Landmark,
    MeetingRoom,
    Neighborhood,
    ResourceType,
)
from payments import fees
from payments.models import Payment
from reservations.demo import accounts, meetings, working_days
from reservations.demo.data_files import import_rows, read_csv, read_picture
from reservations.models import Partner, Seller
from roombook.db.transactions import in_transaction
from roombook.deliveries import DeliveryState

WriteLine = Callable[[str], object]

# Numbers of files in data/pictures.
CITY_PICTURES = 12
ROOM_PICTURES = 7


def is_empty() -> bool:
    return not (User.objects.exists() or Center.objects.exists())


def load(*, now: dt.datetime, write_line: WriteLine, is_small: bool = False) -> None:
    """Load the demo into an empty database; with `is_small`, without the working days."""
    _load_centers_and_accounts(now, write_line)
    # These call the gateway, which must not happen inside a transaction.
    accounts.save_card(now=now)
    meetings.create_from_file(now=now, write_line=write_line)
    if not is_small:
        accounts.create_customers(now=now)
        working_days.create(now=now, write_line=write_line)
        _mark_emails_as_sent()
    for payment in Payment.objects.with_fees_due(now):
        fees.fetch_fees(payment, now=now)
    # Last: this tells a whole demo from the rest of an interrupted load. One transaction for all is
    # not possible, because the gateway is called.
    accounts.open_accounts()


def _mark_emails_as_sent() -> None:
    """Record that the e-mails were sent at their time: not hundreds of them are sent now.

    A payment link can still be paid, so its e-mail is sent.
    """
    past = OutboxMessage.objects.waiting().exclude(kind=PAYMENT_LINK_KIND)
    past.update(state=DeliveryState.SENT, sent_at=F("created_at"), next_attempt_at=None, attempts=1)


@in_transaction
def _load_centers_and_accounts(now: dt.datetime, write_line: WriteLine) -> None:
    """Create the centers and accounts, all or none."""
    for row in read_csv("resource_types.csv", now=now):
        ResourceType.objects.create(**row)
    for row in read_csv("neighborhoods.csv", now=now):
        Neighborhood.objects.create(**row)
    rows = read_csv("centers.csv", now=now)
    import_rows("centers", ({**row, "terms": ""} for row in rows))
    _import_file("terms", now=now)
    # Centers name terms of their own, so these come first.
    import_rows("centers", rows)
    for name in ("rates", "price-lists", "rooms", "services"):
        _import_file(name, now=now)
    centers = {center.name: center for center in Center.objects.order_by("pk")}
    for row in read_csv("landmarks.csv", now=now):
        Landmark.objects.create(**row | {"center": centers[row["center"]]})
    import_rows("closures", _iterate_closures(centers, now))
    _add_pictures(centers, now=now, write_line=write_line)
    accounts.create_accounts()
    for name in ("allowances", "promo-codes"):
        _import_file(name, now=now)
    Partner.objects.bulk_create(Partner(**row) for row in accounts.DATA["partners"])
    Seller.objects.create(**accounts.DATA["seller"])


def _import_file(name: str, *, now: dt.datetime) -> None:
    import_rows(name, read_csv(f"{name.replace('-', '_')}.csv", now=now))


def _iterate_closures(centers: dict[str, Center], now: dt.datetime) -> Iterator[dict[str, str]]:
    """Yield the rows of closures: holidays (12-25) of the coming year, others in days (+20)."""
    for row in read_csv("closures.csv", now=now):
        today = now.astimezone(centers[row["center"]].zone).date()
        if row["day"].startswith("+"):
            day = today + dt.timedelta(int(row["day"]))
        else:
            day = dt.date.fromisoformat(f"{today.year}-{row['day']}")
            if day <= today:
                day = day.replace(year=today.year + 1)
        yield {
            "center": row["center"],
            "room": row["room"],
            "starts_at": f"{day}T00:00",
            "ends_at": f"{day + dt.timedelta(int(row['days']))}T00:00",
            "reason": row["reason"],
        }


def _add_pictures(centers: dict[str, Center], *, now: dt.datetime, write_line: WriteLine) -> None:
    images = {row["center"]: int(row["images"]) for row in read_csv("center_images.csv", now=now)}
    cities = cycle(f"city-{number}.jpg" for number in range(1, CITY_PICTURES + 1))
    for number, center in enumerate(centers.values(), start=1):
        rooms = MeetingRoom.objects.filter(center=center).order_by("pk")
        write_line(f"[{number}/{len(centers)}] {center.name}, {center.city}: {len(rooms)} rooms")
        for room in rooms:
            # The number of a picture of a room is the number of chairs on each side of its table.
            chairs = min(max(room.capacity // 2, 1), ROOM_PICTURES)
            room.picture = ContentFile(read_picture(f"room-{chairs}.jpg"), name="room.jpg")
            room.save()
        for position in range(images[center.name]):
            image = ContentFile(read_picture(next(cities)), name="center.jpg")
            CenterImage.objects.create(center=center, image=image, position=position)
