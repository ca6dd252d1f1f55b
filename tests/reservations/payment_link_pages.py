"""What customers do on the pages of a payment link."""

import re

from payments.gateways.sandbox import confirm_setup
from payments.gateways.sandbox_models import SandboxSetup
from tests.backoffice.reading import words
from tests.payments.gateway_helpers import card


def find_link(message):
    """The path of the link in an e-mail."""
    return re.search(r"/pay/[\w:-]+", message.text)[0]


def enter_card(client, link, total=None, number="4242424242424242"):
    """Press the button, enter a card at the gateway, and return the address it leads back to.

    `total` is what the payer was shown, if that is no longer what the page shows.
    """
    if total is None:
        total = re.search(r'name="total" value="([\d.]+)"', client.get(link).content.decode())[1]
    page = client.post(link, {"total": total}).content.decode()
    secret = re.search(r'url=/sandbox/setups/(\w+)"', page)[1]
    confirm_setup(secret, card(number))
    return SandboxSetup.objects.get(secret=secret).return_url


def follow(client, url):
    return words(client.get(url, follow=True))
