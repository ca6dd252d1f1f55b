"""Reads text and messages from responses, rows from lists, and counts queries."""

import re
from html import unescape

from django.apps import apps
from django.contrib import admin, auth
from django.contrib.messages import get_messages
from django.contrib.messages.middleware import MessageMiddleware
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext


def messages_of(response):
    return [(each.level_tag, str(each)) for each in get_messages(response.wsgi_request)]


def words(response):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", response.content.decode())).split())


def list_rows(client, label, **query):
    """The rows of a list, for the user of the client: rendering its page takes most of the time."""
    request = RequestFactory().get("/", query)
    request.user, request.session = auth.get_user(client), client.session
    MessageMiddleware(lambda _: None).process_request(request)
    page = admin.site.get_model_admin(apps.get_model(label))
    assert page.has_view_or_change_permission(request), label
    return list(page.get_changelist_instance(request).result_list)


def get_hidden_fields(page):
    """What the form that confirms a preview sends."""
    fields: dict[str, list[str]] = {}
    pattern = r'(?:<input type="hidden"|type="submit") name="([^"]+)" value="([^"]*)">'
    form = page.text.partition("action-confirm")[2].partition("</form>")[0]
    for name, value in re.findall(pattern, form):
        fields.setdefault(name, []).append(unescape(value))
    return fields


def count_queries(client, address, *, can_be_refused=False):
    """The queries of a page; 0 if it is refused."""
    with CaptureQueriesContext(connection) as queries:
        status = client.get(address).status_code
    assert status == 200 or can_be_refused, address
    return len(queries) if status == 200 else 0
