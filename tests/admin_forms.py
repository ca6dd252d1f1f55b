"""Reads the forms of admin pages."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """The fields of a page's form, as a browser sends them."""

    def __init__(self, html):
        super().__init__()
        self.fields, self.inside = {}, None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        name = attrs.get("name", "")
        if tag == "option" and self.inside and "selected" in attrs:
            self.fields[self.inside] = attrs.get("value", "")
        elif tag in ("select", "textarea"):
            self.inside = name
            self.fields.setdefault(name, "")
        elif tag == "input" and attrs.get("type") not in ("submit", "file", "button"):
            if attrs.get("type") == "checkbox" and "checked" not in attrs:
                return
            default = "on" if attrs.get("type") == "checkbox" else ""
            self.fields[name] = attrs.get("value", default)

    def handle_endtag(self, tag):
        if tag in ("select", "textarea"):
            self.inside = None

    def handle_data(self, data):
        if self.inside and self.get_starttag_text().startswith("<textarea"):
            self.fields[self.inside] += data.strip()


def form_of(response):
    """What a browser sends if the page is saved without changes."""
    fields = Page(response.content.decode()).fields
    return {
        name: value
        for name, value in fields.items()
        if name and "__prefix__" not in name and not name.startswith("_")
    }


def errors_of(response):
    if response.status_code == 302:
        return {}
    context = response.context
    errors = dict(context["adminform"].form.errors)
    for inline in context["inline_admin_formsets"]:
        for form in inline.formset.forms:
            errors |= form.errors
        if inline.formset.non_form_errors():
            errors["formset"] = inline.formset.non_form_errors()
    return errors
