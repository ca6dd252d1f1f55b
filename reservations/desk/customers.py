"""The page of a customer: what they have booked, spent, missed and owe, and the notes of staff.

From it, staff correct name and address (B22.13), erase the account, or export what is stored about
it (B22.12).
"""

import datetime as dt
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.forms import modelform_factory
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from accounts import account_export, customer_access, roles
from accounts.admin.users import UserAdmin
from accounts.erasure import is_erased
from accounts.models import User, UserType
from accounts.models.account_erasure import UNREAD
from reservations.booking import account_erasure
from reservations.booking.balances import get_unpaid_amounts
from reservations.desk.notes import build_note_list, handle_note, posts_note
from reservations.models import Reservation
from reservations.models.querysets import get_next_first
from reservations.models.status import BOOKED_STATUSES, Status
from reservations.reports.ledger import get_reported_lines, sum_accounts
from reservations.reports.revenue import REVENUE
from roombook import money
from roombook.backoffice.concurrent_edits import ChangedFieldsForm
from roombook.errors import AccountInUse

CONTACT_FIELDS = ("first_name", "last_name", "company_name", "phone_number", "email")
# The next and the latest bookings, which the page lists.
MAX_BOOKINGS = 10


class ContactForm(ChangedFieldsForm):
    """Name, telephone number and e-mail address of a customer, who may have none."""

    def clean_email(self) -> str:
        email: str = self.cleaned_data["email"]
        if email.endswith(UNREAD):
            raise ValidationError("Nobody reads e-mail at this address.")
        return email or str(self.instance.email)


@admin.register(User)
class CustomerAdmin(UserAdmin):
    """Adds the bookings and the notes to the page of an account, its erasure and its export."""

    change_form_outer_before_template = "admin/reservations/customer_summary.html"

    class Media:
        css = {"all": ("reservations/reservation.css",)}

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, object] | None = None,
    ) -> HttpResponse:
        """Show or change the account, or add or delete a note about the customer."""
        if not posts_note(request):
            return super().change_view(request, object_id, form_url, extra_context)
        user = self.get_object(request, unquote(object_id))
        if user is None or not self.has_view_permission(request, user):
            raise PermissionDenied
        show_page = partial(super().change_view, object_id=object_id)
        return handle_note(request, user, show_page, now=timezone.now())

    def get_account_context(self, request: HttpRequest, user: User) -> dict[str, object]:
        context = super().get_account_context(request, user)
        staff, now = roles.get_staff(request), timezone.now()
        context["can_erase"] = self.can_erase(request, user)
        context["can_correct"] = self.can_correct(request, user)
        context["notes"] = build_note_list(user, staff, now=now)
        if roles.has_permission(staff, roles.VIEW_RESERVATION):
            context["bookings"] = _build_bookings(user, staff, now)
        return context

    # --- Corrections, by staff of a center of the customer

    @method_decorator(transaction.atomic)
    def contact_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Correct the name, the phone number and the e-mail address of a customer."""
        user = self.get_object(request, unquote(object_id))
        if user is None or not self.can_correct(request, user):
            raise PermissionDenied
        user = User.objects.select_for_update().get(pk=user.pk)
        page = reverse("admin:accounts_user_change", args=[user.pk])
        callback = partial(self.formfield_for_dbfield, request=request)
        can_correct_address = customer_access.can_correct_address(request.user, user)
        form_class = modelform_factory(
            User,
            ContactForm,
            fields=CONTACT_FIELDS,
            exclude=() if can_correct_address else ("email",),
            formfield_callback=callback,
        )
        data = request.POST if request.method == "POST" else None
        form: Any = form_class(data, instance=user, initial={"email": user.known_email})
        if can_correct_address:
            form.fields["email"].required = bool(user.known_email)
        if form.is_valid():
            self.save_model(request, user, form, change=True)
            self.log_change(request, user, self.construct_change_message(request, form, []))
            self.message_user(request, "The contact details are saved.", messages.SUCCESS)
            return HttpResponseRedirect(page)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Correct contact details",
            "form": form,
            "back_url": page,
        }
        return TemplateResponse(request, "admin/reservations/customer_contact.html", context)

    def can_correct(self, request: HttpRequest, user: User) -> bool:
        return customer_access.can_correct_customer(request.user, user) and not is_erased(user)

    # --- Erasure and export, which need a permission of their own, at all centers

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path(
                "<path:object_id>/contact/", wrap(self.contact_view), name="accounts_user_contact"
            ),
            path("<path:object_id>/erase/", wrap(self.erase_view), name="accounts_user_erase"),
            path(
                "<path:object_id>/export/",
                wrap(require_POST(self.export_view)),
                name="accounts_user_export",
            ),
            *super().get_urls(),
        ]

    def erase_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Erase a customer, after a page that says what is erased and what stays."""
        user = self._get_customer(request, object_id)
        page = reverse("admin:accounts_user_change", args=[user.pk])
        if request.method == "POST":
            try:
                account_erasure.erase_account(
                    user.pk, by=roles.get_staff(request), now=timezone.now()
                )
            except AccountInUse as error:
                self.message_user(request, error.message, messages.ERROR)
            else:
                self.message_user(request, "The customer was erased.", messages.SUCCESS)
            return HttpResponseRedirect(page)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"Erase {user}",
            "customer": user,
            "obstacle": account_erasure.find_obstacle(user),
        }
        return TemplateResponse(request, "backoffice/erase_customer.html", context)

    def export_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Download everything that is stored about a customer. The history records it."""
        user = self._get_customer(request, object_id)
        self.log_change(request, user, "Exported all data of the account.")
        headers = {"Content-Disposition": f'attachment; filename="customer-{user.pk}.json"'}
        document = account_export.build_export(user, for_staff=True)
        return JsonResponse(document, json_dumps_params={"ensure_ascii": False}, headers=headers)

    def _get_customer(self, request: HttpRequest, object_id: str) -> User:
        """Return a customer that the user may erase and export, or raise PermissionDenied."""
        user = self.get_object(request, unquote(object_id))
        if user is None or not self.can_erase(request, user):
            raise PermissionDenied
        return user

    def can_erase(self, request: HttpRequest, user: User) -> bool:
        return (
            self.has_view_permission(request, user)
            and roles.has_permission_everywhere(request.user, roles.ERASE_USER)
            and user.type == UserType.ACCOUNT
            and not is_erased(user)
        )


def _build_bookings(user: User, staff: User, now: dt.datetime) -> dict[str, object]:
    """The bookings of a customer at the centers that the user may see.

    `owed` is "" if nothing is owed, and None if the user may not see payments. `all` and `new` are
    URLs; `new` is "" if the user may not book for the customer.
    """
    rows = Reservation.objects.for_user(user).filter(
        roles.get_center_filter(staff, roles.VIEW_RESERVATION)
    )
    loaded = rows.select_related("room__center")
    upcoming = loaded.filter(status__in=[Status.CONFIRMED, Status.PENDING], start__gt=now)
    billed = sum_accounts(
        get_reported_lines().filter(
            roles.get_center_filter(staff, roles.VIEW_RESERVATION, "center"),
            reservation__user=user,
        )
    )
    list_url = reverse("admin:reservations_reservation_changelist")
    add_url = reverse("admin:reservations_reservation_add")
    can_book = user.is_active and roles.has_permission(staff, roles.ADD_RESERVATION)
    return {
        "now": now,
        "last": list(loaded.order_by(*get_next_first(now))[:MAX_BOOKINGS]),
        "total": rows.count(),
        "upcoming": upcoming.count(),
        "next": upcoming.order_by("start", "pk").first(),
        "billed": REVENUE.display(billed),
        "count": billed["bookings"],
        "missed": rows.filter(status=Status.NO_SHOW).count(),
        "owed": _format_owed_amount(rows, staff),
        "is_partial": roles.get_permitted_centers(staff, roles.VIEW_RESERVATION) is not None,
        "all": f"{list_url}?{urlencode({'q': user.email})}",
        "new": f"{add_url}?{urlencode({'user': user.pk})}" if can_book else "",
    }


def _format_owed_amount(rows: QuerySet[Reservation], staff: User) -> str | None:
    """What is not paid of bookings at centers whose payments the user may see."""
    if not roles.has_permission(staff, roles.VIEW_PAYMENT):
        return None
    booked = rows.filter(
        roles.get_center_filter(staff, roles.VIEW_PAYMENT), status__in=sorted(BOOKED_STATUSES)
    )
    owed = sum(get_unpaid_amounts(booked).values())
    return money.format_amount(owed) if owed else ""
