"""manage.py check_contract: compares a running service with the contract."""

import json
from io import BytesIO
from urllib.error import HTTPError, URLError

import pytest
from django.core.management import CommandError, call_command

from accounts.models import ApiToken
from centers.views import SearchLocations
from payments.models import Payment
from reservations.models import Reservation
from roombook.management.commands import check_contract
from tests.factories_people import PASSWORD
from tests.world import OPERATIONS_BY_NAME

# All others change something, or need the access key of a webhook.
CALLED_OPERATIONS = {
    "Sign in",
    "Get reservation",
    "Search locations",
    "City centers",
    "Check room availability",
    "Reservation cost",
    "Get allowances",
    "List free times",
    "Find alternatives",
    "List reservations",
    "Sign out",
}


@pytest.fixture
def check(world, capsys, monkeypatch):
    def run(base_url, *, password=PASSWORD):
        monkeypatch.setenv("PASSWORD", password)
        call_command("check_contract", base_url, email=world.ada.email)
        return capsys.readouterr().out.splitlines()

    return run


@pytest.fixture
def service(world, monkeypatch):
    """The service without a network between; a function may change its answers."""
    change = {}

    def urlopen(request, *, timeout):
        assert timeout == 10
        path = request.full_url.removeprefix("http://rooms.example.com")
        response = world.client.post(
            path, data=request.data, content_type=request.get_header("Content-type")
        )
        body = BytesIO(change.get(path, lambda text: text)(response.content))
        if response.status_code >= 400:
            raise HTTPError(path, response.status_code, "", {}, body)
        body.status = response.status_code
        return body

    monkeypatch.setattr(check_contract, "urlopen", urlopen)
    return change


URL = "http://rooms.example.com/"


def test_service_that_keeps_the_contract_has_no_differences(world, service, check):
    lines = check(URL)

    assert lines[0] == "signed in to http://rooms.example.com"
    assert lines[-1] == "No difference from the contract."
    assert [line for line in lines if line.startswith("not called: ")] == [
        f"not called: {operation.path}"
        for name, operation in OPERATIONS_BY_NAME.items()
        if name not in CALLED_OPERATIONS
    ]
    assert "never seen: DurationHours, Quantity of ServiceInfo" in lines


def test_check_leaves_no_changes(world, service, check):
    before = list(Reservation.objects.order_by("pk").values())

    check(URL)
    check(URL)

    assert list(Reservation.objects.order_by("pk").values()) == before
    assert ApiToken.objects.filter(user=world.ada).count() == 1  # The one from before.


@pytest.mark.parametrize(
    ("path", "change", "line"),
    [
        (
            "/api/locations/search",
            lambda text: text.replace(b'"ThumbnailUrl"', b'"ThumbnailURL"'),
            "/api/locations/search: Centers.Image.ThumbnailURL is not in the contract",
        ),
        (
            "/api/reservations/cost",
            lambda text: json.dumps({"Success": True, "Total": "12.50"}).encode(),
            "/api/reservations/cost: Total is a string and no decimal",
        ),
        (
            "/api/account/reservations",
            lambda text: b"<html>",
            "/api/account/reservations: the body is null and no ResponseBase",
        ),
        (
            "/api/city-centers",
            lambda text: b'{"Success":true,"Centers":{}}',
            "/api/city-centers: Centers is an object and no list",
        ),
    ],
)
def test_difference_is_printed_and_fails(service, check, capsys, path, change, line):
    service[path] = change

    with pytest.raises(CommandError, match=r"^Differences from the contract: "):
        check(URL)

    assert f"difference: {line}" in capsys.readouterr().out


def test_unexpected_error_is_a_difference(world, service, check, capsys, monkeypatch):
    monkeypatch.setattr(SearchLocations, "perform", lambda *_, **__: 1 / 0)
    world.client.raise_request_exception = False

    with pytest.raises(CommandError):
        check(URL)

    line = "difference: /api/locations/search: answered 500 InternalError, not 200"
    assert line in capsys.readouterr().out


def test_wrong_password_is_reported(service, check):
    with pytest.raises(CommandError, match="answered 401 InvalidCredentials, not 200"):
        check(URL, password="wrong")


def test_unreachable_service_is_reported(check, monkeypatch):
    def urlopen(request, *, timeout):
        raise URLError("refused")

    monkeypatch.setattr(check_contract, "urlopen", urlopen)

    with pytest.raises(CommandError, match=r"rooms\.example\.com cannot be reached"):
        check(URL)


@pytest.mark.parametrize("url", ["rooms.example.com", "file:///etc/passwd", ""])
def test_base_url_must_be_http_or_https(check, url):
    with pytest.raises(CommandError, match="BASE_URL begins with http"):
        check(url)


def test_password_is_prompted_for_if_not_given(service, check, monkeypatch):
    monkeypatch.setattr(check_contract, "getpass", lambda: PASSWORD)

    assert check(URL, password="")[-1] == "No difference from the contract."


def test_check_over_a_real_network(live_server, world, check):
    """The fixture above replaces the network; this test uses one."""
    assert check(live_server.url)[-1] == "No difference from the contract."


def test_operations_without_data_are_not_called(world, service, check):
    Payment.objects.filter(reservation__user=world.ada).delete()
    Reservation.objects.filter(user=world.ada).delete()
    world.center.__class__.objects.update(is_active=False)

    lines = check(URL)

    assert "0 centers found" in lines
    assert "0 reservations of this account" in lines
    assert f"not called: {OPERATIONS_BY_NAME['Get allowances'].path}" in lines
