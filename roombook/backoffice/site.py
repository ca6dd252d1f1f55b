"""The back office as a site under /admin/; ``settings.UNFOLD`` defines its appearance."""

import time
from collections.abc import Callable
from copy import copy
from functools import partial, update_wrapper
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.admin.apps import AdminConfig
from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.contrib.auth import get_user_model
from django.core.paginator import Paginator
from django.core.signing import BadSignature, Signer
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.utils.module_loading import import_string
from unfold.settings import get_config
from unfold.sites import UnfoldAdminSite


class BackofficeAdminConfig(AdminConfig):
    """Django's admin with our site as ``admin.site``."""

    default_site = "roombook.backoffice.site.BackofficeSite"


class AutocompleteView(AutocompleteJsonView):
    """The options of an autocomplete widget."""

    def get_queryset(self) -> QuerySet:
        """Load what the options' labels show, such as a room's center, in the same query."""
        related = getattr(self.model_admin, "list_select_related", None)
        rows: QuerySet = super().get_queryset()
        return rows.select_related(*related) if isinstance(related, tuple) else rows

    def serialize_result(self, obj: Model, to_field_name: str) -> dict[str, str]:
        result = super().serialize_result(obj, to_field_name)
        return {**result, "text": getattr(obj, "full_name", "") or result["text"]}


# The field with the form that somebody sent without a session.
KEPT_FORM = "kept_form"
# The cookie, and the field of that form, with the id of who was signed in last in this browser. The
# session has ended by then, and may be deleted.
AUTHOR, AUTHOR_DAYS = "last_staff", 30


class BackofficeSite(UnfoldAdminSite):
    index_title = "Dashboard"
    login_template = "backoffice/sign_in.html"

    def has_permission(self, request: HttpRequest) -> bool:
        """Staff whose second factor is pending may only enter a code or sign out."""
        user: Any = request.user
        return super().has_permission(request) and (
            request.path == reverse("admin:logout")
            or not user.is_second_factor_pending(request.session)
        )

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Callable[..., Any]:  # noqa: FBT001, FBT002 (Django's signature)
        """Keep what was entered in a form whose session has ended: signing in leads back to it."""
        guarded = super().admin_view(view, cacheable)

        def show(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            is_sign_out = request.path == reverse("admin:logout")
            # A customer, who may never open the page, gets Django's answer.
            is_customer = request.user.is_authenticated and not request.user.is_staff
            is_exempt = request.method != "POST" or is_sign_out or is_customer
            if is_exempt or self.has_permission(request):
                response = guarded(request, *args, **kwargs)
                self._remember_author(request, response)
                return response
            if "X-Requested-With" in request.headers:
                # A script could not tell a redirect to sign in from any other.
                return HttpResponse(status=HTTPStatus.UNAUTHORIZED)
            entered = request.POST.copy()
            for name in [*entered]:
                if name == "csrfmiddlewaretoken" or "password" in name:
                    del entered[name]
            entered[AUTHOR] = request.COOKIES.get(AUTHOR, "")
            return self._ask_to_sign_in(request, entered.urlencode())

        return update_wrapper(show, guarded)

    def _remember_author(self, request: HttpRequest, response: HttpResponseBase) -> None:
        if not request.user.is_authenticated:
            return
        author = Signer(salt=AUTHOR).sign(str(request.user.pk))
        if request.COOKIES.get(AUTHOR) != author:
            response.set_cookie(
                AUTHOR,
                author,
                max_age=AUTHOR_DAYS * 24 * 60 * 60,
                path=reverse("admin:index"),
                secure=settings.SESSION_COOKIE_SECURE,
                httponly=True,
                samesite="Lax",
            )

    def _ask_to_sign_in(self, request: HttpRequest, entered: str) -> HttpResponse:
        url = request.get_full_path()
        if super().has_permission(request):
            return self._show_kept_form(request, entered, url)
        page_request = copy(request)
        page_request.method = "GET"
        query = urlencode({"next": url})
        context = {KEPT_FORM: entered, "app_path": f"{reverse('admin:login')}?{query}"}
        response = self.login(page_request, context)
        response.status_code = HTTPStatus.FORBIDDEN
        return response

    def _show_kept_form(self, request: HttpRequest, entered: str, url: str) -> HttpResponse:
        """A page that sends the form again; before that, it may lead to the second factor.

        Only who entered it can send it: a colleague would do in their own name what they never saw.
        """
        kept = QueryDict(entered, mutable=True)
        author = (kept.pop(AUTHOR, None) or [""])[-1]
        fields = [(name, value) for name, values in kept.lists() for value in values]
        target, layout = url, "backoffice/page.html"
        if not self.has_permission(request):
            layout = "unfold/layouts/unauthenticated.html"
            fields = [(KEPT_FORM, entered)]
            target = f"{reverse('admin:accounts_second_factor')}?{urlencode({'next': url})}"
        context = {
            **self.each_context(request),
            "title": "You are signed in again",
            "fields": fields,
            "target": target,
            "is_complete": target == url,
            "author": _find_author(author),
            "place": url.partition("?")[0].strip("/").replace("/", " / "),
            "layout": layout,
        }
        return TemplateResponse(request, "backoffice/kept_form.html", context)

    def continue_to(self, request: HttpRequest, url: str) -> HttpResponse:
        """Lead to the page that somebody who has signed in asked for, and to what they entered."""
        if entered := request.POST.get(KEPT_FORM):
            return self._show_kept_form(request, entered, url)
        return HttpResponseRedirect(url)

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if request.method == "GET" and super().has_permission(request):
            query = request.GET.urlencode()
            if not self.has_permission(request):
                return HttpResponseRedirect(f"{reverse('admin:accounts_second_factor')}?{query}")
        context = {KEPT_FORM: request.POST.get(KEPT_FORM, ""), **(extra_context or {})}
        response = super().login(request, context)
        if isinstance(response, HttpResponseRedirect):
            return self.continue_to(request, response.url)
        return response

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return a list that is built when it is used.

        Every page has it in its context, but few show it, and it takes four checks of permissions
        for each model.
        """
        get_app_list = super().get_app_list
        return cast("list[Any]", SimpleLazyObject(lambda: get_app_list(request, app_label)))

    def autocomplete_view(self, request: HttpRequest) -> HttpResponseBase:
        return AutocompleteView.as_view(admin_site=self)(request)

    def search(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        """The theme's results, of our search.

        Its own search loads every matching row, stores results for five minutes and fails on
        invalid page numbers.
        """
        started_at = time.monotonic()
        # Imports models, which do not exist yet when this module is imported.
        from roombook.backoffice.search import search

        results = search(self, request)
        context = {
            "results": results,
            "page_counter": 0,
            "page_obj": Paginator(results, per_page=max(len(results), 1)),
            "execution_time": time.monotonic() - started_at,
        }
        return TemplateResponse(request, "backoffice/search_results.html", context)

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The theme's page, with a form that counts wrong old passwords as failed sign-ins."""
        # These load the user model, which does not exist yet when this module is imported.
        from django.contrib.auth.views import PasswordChangeView

        from roombook.middleware import get_client_address

        form_class = import_string(get_config()["LOGIN"]["password_change_form"])
        request.current_app = self.name
        view = PasswordChangeView.as_view(
            form_class=partial(form_class, network_address=get_client_address(request)),
            success_url=reverse(f"{self.name}:password_change_done"),
            extra_context={**self.each_context(request), **(extra_context or {})},
        )
        response: HttpResponse = view(request)  # type: ignore[assignment]
        return response


def _find_author(signed: str) -> Any:
    """The user of the cookie, or None."""
    try:
        pk = Signer(salt=AUTHOR).unsign(signed)
    except BadSignature:
        return None
    return get_user_model()._default_manager.filter(pk=pk).first()
