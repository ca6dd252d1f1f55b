"""Staff in the back office: their roles, and invitations. Only administrators may open it."""

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.models import Group
from django.contrib.auth.views import PasswordResetConfirmView
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse_lazy
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views.generic import FormView
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminPasswordWidget,
    UnfoldAdminTextInputWidget,
)

from accounts import invitations, roles, second_factor
from accounts.admin.center_scope import SharedTimeZoneMixin, SuperuserOnlyMixin
from accounts.admin.users import UserSearchMixin
from accounts.models import CenterRole, StaffMember, User, canonicalize_email
from roombook.backoffice import audit_log
from roombook.backoffice.model_admin import ModelAdmin
from roombook.backoffice.widgets import AutocompleteMultipleField, AutocompleteMultipleWidget
from roombook.errors import InvalidRequest, TooManyRequests
from roombook.middleware import get_base_url, get_client_address, mark_secret

NAME_FIELDS = ("first_name", "last_name")
CENTERS_PREFIX = "centers_"


class StaffForm(forms.ModelForm):
    """An account of staff with its roles.

    `build_staff_form` adds a field with the centers of each role.
    """

    class Meta:
        model = User
        fields = ("email", *NAME_FIELDS, "is_active", "is_staff", "is_superuser", "groups")
        labels = {"groups": "Roles at all centers", "is_superuser": "Administrator"}
        help_texts = {
            "groups": "A role at all centers includes future ones.",
            "is_superuser": "May do everything, and invites staff.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            for name, group in self._get_center_fields():
                rows = CenterRole.objects.filter(user_id=self.instance.pk, group=group)
                self.initial[name] = list(rows.values_list("center", flat=True))

    def _get_center_fields(self) -> list[tuple[str, int]]:
        """Return the names of the fields with centers, with the id of their role."""
        return [
            (name, int(name.removeprefix(CENTERS_PREFIX)))
            for name in self.fields
            if name.startswith(CENTERS_PREFIX)
        ]

    def save_center_roles(self, user: User) -> None:
        for name, group in self._get_center_fields():
            chosen = {center.pk for center in self.cleaned_data[name]}
            stored = CenterRole.objects.filter(user=user, group_id=group)
            for role in stored.exclude(center__in=chosen):
                role.delete()
            for center in chosen - set(stored.values_list("center", flat=True)):
                CenterRole.objects.create(user=user, group_id=group, center_id=center)


class InvitationForm(StaffForm):
    """A new member of staff. A customer with this e-mail address becomes one.

    The password of a customer is removed: the person who created the account may know it.
    """

    class Meta(StaffForm.Meta):
        fields = ("email", *NAME_FIELDS, "is_superuser", "groups")  # type: ignore[assignment]

    def clean_email(self) -> str:
        email = canonicalize_email(self.cleaned_data["email"])
        # Locked, so that the account is not erased before it is saved.
        existing = User.objects.filter(email=email).select_for_update(no_key=True).first()
        if existing is not None and existing.is_staff:
            raise ValidationError("This is a member of staff already.")
        if existing is not None and not existing.is_active:
            raise ValidationError("The account with this e-mail address is deactivated.")
        # The form changes that account instead of adding another one.
        self.instance = existing or User()
        return email


def build_staff_form(base: type[StaffForm]) -> type[StaffForm]:
    """Return the form with a field for each role: the centers at which it is given."""
    center = CenterRole._meta.get_field("center")
    fields = {
        f"{CENTERS_PREFIX}{group.pk}": AutocompleteMultipleField(
            center.related_model._default_manager.all(),
            label=f"{group.name} at",
            required=False,
            widget=AutocompleteMultipleWidget(center, admin.site),
        )
        for group in Group.objects.order_by("name")
    }
    return cast("type[StaffForm]", type("StaffFormWithCenters", (base,), fields))


@admin.register(StaffMember)
class StaffAdmin(UserSearchMixin, SuperuserOnlyMixin, SharedTimeZoneMixin, ModelAdmin):
    """Staff, apart from customers.

    The rows are instances of User, so that the audit log records their changes as an account's.
    """

    list_display = ("email", "name", "given_roles", "two_step", "is_active", "last_login")
    list_filter = ("is_active", "is_superuser", "groups")
    search_help_text = "Name, e-mail address or phone number."
    secret_fields = frozenset({"password"})
    ordering = ("email",)
    sortable_by = ("email", "last_login")
    readonly_fields = ("last_login", "two_step")
    actions = ("send_invitation", "reset_second_factor")

    # --- The list

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return User.objects.filter(is_staff=True).order_by(*self.ordering)

    def annotate_page(self, request: HttpRequest, rows: list[Any]) -> None:
        everywhere = User.groups.through.objects.filter(user__in=rows)
        texts: dict[int, list[str]] = {user.pk: [] for user in rows}
        for pk, name in everywhere.values_list("user", "group__name").order_by("group__name"):
            texts[pk].append(f"{name} everywhere")
        at_centers = CenterRole.objects.filter(user__in=rows).order_by("group__name", "center")
        centers: dict[tuple[int, str], list[str]] = {}
        for pk, name, center in at_centers.values_list("user", "group__name", "center__name"):
            centers.setdefault((pk, name), []).append(center)
        for (pk, name), names in centers.items():
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            texts[pk].append(f"{name} at {names[0]}{more}")
        for user in rows:
            names = ["administrator"] if user.is_superuser else texts[user.pk]
            user.given_roles = ", ".join(names) or "none"

    @admin.display(description="name")
    def name(self, user: User) -> str:
        return user.get_full_name()

    @admin.display(description="roles")
    def given_roles(self, user: Any) -> str:
        return user.given_roles

    @admin.display(description="two-step sign-in", boolean=True)
    def two_step(self, user: User) -> bool:
        return user.second_factor_since is not None

    # --- The page

    def get_form(
        self, request: HttpRequest, obj: User | None = None, *args: Any, **kwargs: Any
    ) -> type[forms.ModelForm]:
        kwargs["form"] = build_staff_form(StaffForm if obj else InvitationForm)
        return super().get_form(request, obj, *args, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        centers = [
            f"{CENTERS_PREFIX}{pk}"
            for pk in Group.objects.order_by("name").values_list("pk", flat=True)
        ]
        account = ("email", NAME_FIELDS)
        description = "They get an e-mail with a link to choose a password."
        if obj is not None:
            account += (("is_active", "is_staff"), ("last_login", "two_step"))  # type: ignore[assignment]
            description = ""
        return (
            (None, {"fields": account, "description": description}),
            ("Roles", {"fields": ("is_superuser", "groups", *centers)}),
        )

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "groups":
            kwargs["queryset"] = Group.objects.order_by("name")
            kwargs["widget"] = UnfoldAdminCheckboxSelectMultipleWidget()
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if (user := context["original"]) is not None:
            # The theme's breadcrumbs lead to the list of this object's model.
            context["original"] = StaffMember(pk=user.pk, email=user.email)
        return super().render_change_form(request, context, *args, **kwargs)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> Any:
        context = {"title": "Invite a member of staff", **(extra_context or {})}
        return super().add_view(request, form_url, context)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Accounts are deactivated, not deleted."""
        return False

    # --- Saving

    def save_form(self, request: HttpRequest, form: Any, change: Any) -> Any:
        user = super().save_form(request, form, change)
        if not change:
            user.is_staff = True
            user.set_unusable_password()
        return user

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        if change:
            super().save_model(request, obj, form, change)
        elif obj.pk is None:
            obj.save()
        else:
            obj.save(update_fields=[*NAME_FIELDS, "is_staff", "is_superuser", "password"])
            obj.known_networks.all().delete()

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: Any) -> None:
        super().save_related(request, form, formsets, change)
        form.save_center_roles(form.instance)
        if not change:
            self._invite(request, form.instance)

    def _invite(self, request: HttpRequest, user: User) -> None:
        invitations.send_invitation(
            user,
            base_url=get_base_url(request),
            invited_by=roles.get_staff(request),
            now=timezone.now(),
        )
        self.log_change(request, user, "An invitation was sent.")

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: Any = None) -> Any:
        self.message_user(request, f"An invitation is sent to {obj.email}.", messages.SUCCESS)
        return self.response_post_save_add(request, obj)

    # --- Actions

    @admin.action(description="Send the invitation again", permissions=["change"])
    def send_invitation(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        users = list(queryset.filter(is_active=True))
        for user in users:
            self._invite(request, user)
        self.message_user(request, f"{len(users)} invitations were sent.", messages.SUCCESS)

    @admin.action(description="Reset two-step sign-in", permissions=["change"])
    def reset_second_factor(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """For staff who lost their phone."""
        users = list(queryset.filter(second_factor_since__isnull=False))
        for user in users:
            second_factor.turn_off(user, by=roles.get_staff(request), now=timezone.now())
        text = f"Two-step sign-in was reset for {len(users)} accounts."
        self.message_user(request, text, messages.SUCCESS)

    # --- Links by e-mail

    def get_urls(self) -> list[URLPattern]:
        forgotten, invited, new = ForgottenPasswordView, InvitationView, NewPasswordView
        return [
            # The theme links a page with this name on its sign-in page.
            path("forgotten-password/", forgotten.as_view(), name="admin_password_reset"),
            path("invitation/reset/<uidb64>/<token>/", new.as_view(), name="accounts_new_password"),
            path("invitation/<uidb64>/<token>/", invited.as_view(), name="accounts_invitation"),
            *super().get_urls(),
        ]


class NewPasswordForm(SetPasswordForm):
    """Sets a password in the fields of the theme."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget = UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"})


@method_decorator(mark_secret, name="dispatch")
class InvitationView(PasswordResetConfirmView):
    """Where a member of staff who was sent a link chooses a password."""

    form_class = NewPasswordForm
    template_name = "backoffice/invitation.html"
    success_url = reverse_lazy("admin:login")
    title = "Choose a password"

    def get_user(self, uidb64: str) -> User | None:
        user = super().get_user(uidb64)
        return user if isinstance(user, User) and self.may_choose(user) else None

    def may_choose(self, user: User) -> bool:
        """The account may have changed since the link was sent."""
        return user.is_active and (user.is_staff or user.is_superuser)

    def form_valid(self, form: Any) -> HttpResponse:
        audit_log.record_change(form.user, {}, by=form.user, note="The password was set by a link.")
        messages.success(self.request, "Your password is set. Sign in with it.")
        return super().form_valid(form)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**admin.site.each_context(self.request), **super().get_context_data(**kwargs)}


class NewPasswordView(InvitationView):
    """Where staff who forgot their password choose a new one."""

    token_generator = invitations.FORGOTTEN_PASSWORD_TOKENS

    def may_choose(self, user: User) -> bool:
        return super().may_choose(user) and invitations.may_reset_password(user)


class EmailForm(forms.Form):
    email_address = forms.CharField(
        label="E-mail address",
        max_length=255,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "username", "autofocus": True}),
    )


class ForgottenPasswordView(FormView):
    """Sends staff a link to that page."""

    form_class = EmailForm
    template_name = "backoffice/forgotten_password.html"
    success_url = reverse_lazy("admin:login")

    def form_valid(self, form: Any) -> HttpResponse:
        try:
            invitations.send_forgotten_password(
                form.cleaned_data["email_address"],
                network_address=get_client_address(self.request),
                base_url=get_base_url(self.request),
                now=timezone.now(),
            )
        except InvalidRequest as error:
            form.add_error("email_address", error.fields["email_address"])
        except TooManyRequests as error:
            form.add_error(None, error.message)
        if form.errors:
            return self.form_invalid(form)
        text = "If the account has two-step sign-in, the e-mail arrives in a minute."
        messages.success(self.request, text)
        return super().form_valid(form)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return {**admin.site.each_context(self.request), **super().get_context_data(**kwargs)}
