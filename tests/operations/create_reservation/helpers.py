"""Helpers for tests of new reservations."""

PATH = "/api/reservations/create"
NINE_TO_TWELVE = {"StartDate": "2027-03-03T09:00:00", "EndDate": "2027-03-03T12:00:00"}
GRACE = {"Name": "Grace", "EmailAddress": "grace@example.com", "CompanyName": "Navy"}
