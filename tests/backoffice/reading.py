"""Reads text and messages from responses."""

import re
from html import unescape

from django.contrib.messages import get_messages


def messages_of(response):
    return [(each.level_tag, str(each)) for each in get_messages(response.wsgi_request)]


def words(response):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", response.content.decode())).split())
