"""Books a room with the client that openapi-python-client makes."""

import sys

from roombook_client import Client
from roombook_client.api.accounts import sign_in
from roombook_client.api.centers import search_locations
from roombook_client.api.reservations import checkout, create_reservation
from roombook_client.models import (
    CheckoutRequest,
    CreateReservationRequest,
    SearchFilterCriteria,
    SearchLocationsRequest,
    SignInRequest,
)

client = Client(base_url=sys.argv[1])
day = sys.argv[2]
signed_in = sign_in.sync(
    client=client,
    body=SignInRequest(email_address="demo@roombook.example", password="quiet-harbour-42"),
)
token = signed_in.token
found = search_locations.sync(
    client=client,
    body=SearchLocationsRequest(
        token=token,
        query="Denver, CO",
        filters=SearchFilterCriteria(capacity_low=6, capacity_high=8),
    ),
)
created = create_reservation.sync(
    client=client,
    body=CreateReservationRequest(
        token=token,
        meeting_room_id=found.centers[0].meeting_rooms[0].id,
        start_date=f"{day}T11:00:00",
        end_date=f"{day}T12:00:00",
    ),
)
reservation = created.reservation
refused = checkout.sync(
    client=client, body=CheckoutRequest(token=token, reservation_id=2_000_000_000)
)
assert refused.error.summary == "NotFound", refused
booked = checkout.sync(
    client=client,
    body=CheckoutRequest(token=token, reservation_id=reservation.id, use_saved_payment_info=True),
)
print(booked.status)
