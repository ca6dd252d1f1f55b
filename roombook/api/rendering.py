"""Renders Python objects as JSON objects, by functions that are compiled once per serializer.

DRF calls several methods for every field of every object, which took 90% of a search.
`ContractSerializer` compiles its declared fields into one function per type instead: all
attributes are read by one call, and each value is converted by one more.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.http import HttpRequest
from rest_framework.request import Request

JSONDict: TypeAlias = dict[str, Any]
# Fields with such a value are left out of a response; false, 0 and [] stay (B2.1).
NO_VALUES: tuple[object, ...] = (None, "", {})


class RenderContext:
    """Shared by all objects of a response: the request's host and the objects rendered so far."""

    def __init__(self, request: HttpRequest | Request | None = None) -> None:
        self.request = request
        # Keeps a reference to the object, so that no other object gets the same id.
        self.shared: dict[tuple[object, int], tuple[object, object]] = {}

    @cached_property
    def base_url(self) -> str:
        """The setting PUBLIC_URL, else the request's checked Host, with a slash at the end."""
        if settings.PUBLIC_URL:
            return str(settings.PUBLIC_URL).rstrip("/") + "/"
        return self.request.build_absolute_uri("/") if self.request is not None else "/"

    def build_url(self, url: str) -> str:
        """Return the URL with scheme and host; one that a storage made absolute stays as it is."""
        return url if "://" in url else self.base_url + url.lstrip("/")


Render: TypeAlias = Callable[[Any, RenderContext], Any]


class CompiledField(NamedTuple):
    """A field of a response: its name, where its value comes from, and how it is rendered."""

    name: str
    attribute: str | None  # None: the object itself, as for the parts of an address.
    render: Callable[..., object]
    takes_context: bool = False


def compile_object(fields: Sequence[CompiledField]) -> Render:
    """Return the function that renders an object, or a mapping, with these fields.

    A mapping may lack a field. A missing attribute of an object is a defect.
    """
    attributes = [field.attribute for field in fields if field.attribute is not None]
    whole_object = [index for index, field in enumerate(fields) if field.attribute is None]
    get_values = _compile_getter(attributes)
    steps = [(field.name, field.render, field.takes_context) for field in fields]

    def render(instance: object, context: RenderContext) -> JSONDict:
        values: Iterable[object]
        if isinstance(instance, dict):
            values = [instance.get(name) for name in attributes]
        else:
            try:
                values = get_values(instance)
            except ObjectDoesNotExist:
                values = [_get_related(instance, name) for name in attributes]
        if whole_object:
            values = list(values)
            for index in whole_object:
                values.insert(index, instance)
        result = {}
        # Runs hundreds of times per response: even `strict=` would take measurable time.
        for (name, convert, takes_context), value in zip(steps, values):  # noqa: B905
            if value is not None:
                rendered = convert(value, context) if takes_context else convert(value)
                if rendered or rendered not in NO_VALUES:
                    result[name] = rendered
        return result

    return render


def _compile_getter(attributes: Sequence[str]) -> Callable[[object], Iterable[object]]:
    """Return the function that reads all of these attributes."""
    if len(attributes) > 1:
        return attrgetter(*attributes)
    return lambda instance: [getattr(instance, name) for name in attributes]


def _get_related(instance: object, name: str) -> object:
    try:
        return getattr(instance, name)
    except ObjectDoesNotExist:  # The other side of a one-to-one relation.
        return None


def compile_list(render: Callable[..., object], *, takes_context: bool) -> Render:
    """Return the function that renders each element."""
    if takes_context:
        return lambda elements, context: [render(each, context) for each in elements]
    return lambda elements, context: [render(each) for each in elements]


def share(render: Render) -> Render:
    """Render an object that occurs several times in one response only once."""

    def render_shared(instance: object, context: RenderContext) -> object:
        key = (render, id(instance))
        known = context.shared.get(key)
        if known is None:
            known = context.shared[key] = (instance, render(instance, context))
        return known[1]

    return render_shared
