"""Signing in to the back office, in a browser."""

from playwright.sync_api import expect


def test_staff_sign_in_shows_dashboard(desk):
    page = desk("desk")

    menu = page.locator("#nav-sidebar")
    expect(menu.get_by_text("Reservations", exact=True)).to_be_visible()
    expect(menu.get_by_text("Reports")).to_have_count(0)


def test_wrong_password_shows_message(desk, live_server):
    page = desk("viewer")
    page.context.clear_cookies()

    page.goto(f"{live_server.url}/admin/login/")
    page.fill("#id_username", "viewer@roombook.example")
    page.fill("#id_password", "wrong")
    page.click("#login-form button[type=submit]")

    message = page.get_by_text("Please enter the correct e-mail address and password")
    expect(message).to_be_visible()
