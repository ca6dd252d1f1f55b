"""Signing in to the back office, in a browser."""


def test_staff_sign_in_shows_dashboard(desk):
    page = desk("desk")

    assert page.locator("#nav-sidebar").get_by_text("Reservations", exact=True).is_visible()
    assert page.locator("#nav-sidebar").get_by_text("Reports").count() == 0


def test_wrong_password_shows_message(desk, live_server):
    page = desk("viewer")
    page.context.clear_cookies()

    page.goto(f"{live_server.url}/admin/login/")
    page.fill("#id_username", "viewer@roombook.example")
    page.fill("#id_password", "wrong")
    page.click("#login-form button[type=submit]")

    assert page.get_by_text("Please enter the correct e-mail address and password").is_visible()
