"""The page of a center, with a tab for each kind of its rows, and the list of centers."""

from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.core.exceptions import NON_FIELD_ERRORS, PermissionDenied
from django.db.models import Count, ForeignKey, Model, QuerySet
from django.forms import ModelChoiceField, ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.text import capfirst
from unfold.widgets import UnfoldAdminSelectWidget

from accounts.admin.center_scope import CenterScopedInlineMixin, CenterScopedMixin
from centers import hours, models
from centers.admin.closures import ClosureForm, SeenEffectsForm
from centers.admin.common import (
    NamedRowsFormSet,
    TimelineLinkMixin,
    get_center_zone,
    get_object_id,
    render_thumbnail,
)
from centers.admin.opening_hours_forms import OpeningHoursForm, OpeningHoursFormSet
from centers.admin.rates import RateForm, find_price_warnings, summarize_examples
from centers.admin.terms import TermsInline
from centers.closure_effects import (
    KEPT_TIMES,
    KEPT_TIMES_CHOICES,
    ClosureEffects,
    time_zone_changed,
)
from centers.resources import CenterResource
from centers.search import split_words
from roombook import places
from roombook.backoffice.concurrent_edits import CachedChoiceField
from roombook.backoffice.model_admin import (
    LocalTimeMixin,
    ModelAdmin,
    TabularInline,
)
from roombook.errors import SlotUnavailable
from roombook.imports.admin import ImportExportAdminMixin


class CoordinatesForm(forms.Form):
    """A location on the map."""

    latitude = forms.FloatField(min_value=-90, max_value=90)
    longitude = forms.FloatField(min_value=-180, max_value=180)

    def find_time_zone(self) -> str:
        """The name of the time zone there; empty if it is unknown or the location is invalid."""
        if not self.is_valid():
            return ""
        return places.find_time_zone(self.cleaned_data["latitude"], self.cleaned_data["longitude"])


class CenterEditForm(SeenEffectsForm):
    """A center. Without JavaScript too, moving it on the map changes its time zone."""

    keeps_instants = forms.ChoiceField(
        label=KEPT_TIMES,
        choices=KEPT_TIMES_CHOICES,
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="Customers whose booking moves get an e-mail.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.former_zone = self.instance.time_zone_id

    def add_error(self, field: str | None, error: Any) -> None:
        """A tab has no fields of the center: what is wrong with it is above the rows of the tab."""
        wrong = getattr(error, "error_dict", {}).keys() - {NON_FIELD_ERRORS}
        if wrong - self.fields.keys():
            error = error.messages
        super().add_error(field, error)

    def find_effects(self, cleaned: dict[str, Any]) -> ClosureEffects | None:
        has_moved = {"latitude", "longitude"} & set(self.changed_data)
        if has_moved and "time_zone_id" not in self.changed_data:
            coordinates = {name: cleaned.get(name) for name in ("latitude", "longitude")}
            if time_zone := CoordinatesForm(coordinates).find_time_zone():
                cleaned["time_zone_id"] = time_zone
                self.changed_data.append("time_zone_id")
        return super().find_effects(cleaned)


class CenterTabInline(CenterScopedInlineMixin, TabularInline):
    """Rows of a center."""

    # Foreign keys to the center's own rates or rooms, and to types: they are few enough for a
    # select box, and read once for all rows of the inline.
    center_choices: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    # Choices to which staff can add rows from here, in a window.
    addable_choices: tuple[str, ...] = ()
    per_page = 25
    extra = 0

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # Who may only view a row reads the names of these, one query each, instead of choices.
        related = ("center", *self.choices, *self.center_choices)
        return super().get_queryset(request).select_related(*related)

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: object
    ) -> ModelChoiceField | None:
        if db_field.name in (*self.center_choices, *self.choices):
            rows = db_field.related_model._default_manager.order_by("name")
            if db_field.name in self.center_choices:
                center = get_object_id(request)
                rows = rows.filter(center=center) if center is not None else rows.none()
            kwargs = {"queryset": rows, "form_class": CachedChoiceField, **kwargs}
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is None or db_field.name in self.addable_choices:
            return field
        if isinstance(field.widget, RelatedFieldWidgetWrapper):
            # No links to add or change: the choices have their own tab or list.
            field.widget = field.widget.widget
        return field


class OpeningHoursInline(CenterScopedInlineMixin, TabularInline):
    model = models.OpeningHours
    form = OpeningHoursForm
    formset = OpeningHoursFormSet
    template = "centers/week.html"
    extra = 0


class RateInline(CenterTabInline):
    model = models.Rate
    form = RateForm
    formset = NamedRowsFormSet
    fields = (
        *("name", "is_flat_rate", "flat_rate", "hourly", "half_day", "full_day"),
        *("setup_fee", "is_zero_price_allowed", "example_prices"),
    )
    readonly_fields = ("example_prices",)
    ordering = ("name", "pk")
    show_change_link = True

    @admin.display(description="4 h, 8 h, 2 days")
    def example_prices(self, rate: models.Rate) -> str:
        return summarize_examples(rate) or "-"


class MeetingRoomInline(CenterTabInline):
    model = models.MeetingRoom
    formset = NamedRowsFormSet
    form = SeenEffectsForm
    fields = (
        *("name", "resource_type", "capacity", "rate"),
        *("is_live_inventory", "is_active", "is_blocked"),
    )
    choices = addable_choices = ("resource_type",)
    center_choices = ("rate",)
    ordering = ("name", "pk")
    show_change_link = True


class ServiceInline(CenterTabInline):
    model = models.Service
    formset = NamedRowsFormSet
    fields = (
        *("name", "resource_type", "rate", "minimum_booking"),
        *("needs_duration", "needs_quantity", "bill_at_center", "is_active"),
    )
    choices = ("resource_type",)
    center_choices = ("rate",)
    show_change_link = True


class ClosureInline(CenterTabInline):
    """Current and future closures. The list of closures has past ones too."""

    model = models.Closure
    template = "centers/closures_tab.html"
    form = ClosureForm
    fields = ("starts_at", "ends_at", "reason", "room")
    center_choices = ("room",)
    hide_title = True
    ordering = ("starts_at", "pk")

    def get_queryset(self, request: HttpRequest) -> QuerySet[models.Closure]:
        return super().get_queryset(request).filter(ends_at__gt=timezone.now())


class CenterImageInline(CenterTabInline):
    model = models.CenterImage
    fields = ("preview", "image", "position")
    readonly_fields = ("preview",)
    hide_title = True

    @admin.display
    def preview(self, image: models.CenterImage) -> str:
        return render_thumbnail(image.thumbnail)


class LandmarkInline(CenterTabInline):
    model = models.Landmark
    fields = ("name", "type", "description")
    hide_title = True

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name == "description" and field is not None:
            field.widget.attrs["rows"] = 2
        return field


@admin.register(models.Center)
class CenterAdmin(
    ImportExportAdminMixin, TimelineLinkMixin, CenterScopedMixin, LocalTimeMixin, ModelAdmin
):
    resource_class = CenterResource
    form = CenterEditForm
    warn_unsaved_form = True
    center_path = ""
    timeline_label = "Timeline"
    list_display = ("name", "city", "state", "country", "room_count", "is_active", "rank")
    list_filter = (
        *("is_active", "is_after_hours_support_enabled", "is_new_location", "is_new_low_price"),
    )
    # Shows the search box.
    search_fields = ("search_text",)
    search_help_text = "Name, address, country, neighborhood or landmark, as customers search"
    ordering = ("rank", "name_folded", "pk")
    sortable_by = ()
    autocomplete_fields = ("neighborhood",)
    readonly_fields = ("opening_hours_summary", "searchable_text")
    inlines = (
        *(OpeningHoursInline, RateInline, MeetingRoomInline, ServiceInline, TermsInline),
        *(ClosureInline, CenterImageInline, LandmarkInline),
    )
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "name",
                    ("is_active", "rank"),
                    "neighborhood",
                    ("tax_rate", "prices_include_tax"),
                    "terms",
                )
            },
        ),
        (
            "Address",
            {
                "fields": (
                    *("street1", ("street2", "street3"), ("city", "state")),
                    *(("postal_code", "country"), ("latitude", "longitude")),
                    ("time_zone_id", "keeps_instants"),
                ),
            },
        ),
        (
            "For customers",
            {
                "fields": (
                    *("promo_text", "parking_information"),
                    *(("is_new_location", "is_new_low_price"), "is_after_hours_support_enabled"),
                    "opening_hours_summary",
                )
            },
        ),
        ("Search", {"fields": ("searchable_text",), "classes": ("collapse",)}),
    )

    class Media:
        css = {"all": ["centers/centers.css"]}
        js = ["centers/week.js", "centers/place.js"]

    def search(self, request: HttpRequest, rows: Any, words: str) -> Any:
        return rows.containing_words(split_words(words))

    def annotate_page(self, request: HttpRequest, rows: list[Any]) -> None:
        active = models.MeetingRoom.objects.filter(center__in=rows, is_active=True)
        counts = dict(active.values_list("center").annotate(Count("pk")).order_by())
        for center in rows:
            center.active_rooms = counts.get(center.pk, 0)

    result_icon = "apartment"

    def get_result_description(self, row: models.Center) -> str:
        return f"Center, {row.city}"

    @admin.display(description="active rooms")
    def room_count(self, center: Any) -> int:
        return center.active_rooms

    # The time zone of the coordinates that are being entered

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.time_zone_view)
        return [path("time-zone/", view, name="centers_time_zone"), *super().get_urls()]

    def time_zone_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        form = CoordinatesForm(request.GET)
        if not form.is_valid():
            message = " ".join(str(error) for errors in form.errors.values() for error in errors)
            return JsonResponse({"timeZone": "", "message": message})
        time_zone = form.find_time_zone()
        message = "" if time_zone else "The time zone of these coordinates is unknown."
        return JsonResponse({"timeZone": time_zone, "message": message})

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> type[ModelForm]:
        form = super().get_form(request, *args, **kwargs)
        if "latitude" in form.base_fields:
            url = reverse("admin:centers_time_zone")
            form.base_fields["latitude"].widget.attrs["data-time-zone-url"] = url
        if "parking_information" in form.base_fields:
            form.base_fields["parking_information"].widget.attrs["rows"] = 3
        return form

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField | None:
        if db_field.name == "terms":
            center = get_object_id(request)
            kwargs["queryset"] = models.Terms.objects.filter(center=center).order_by("name")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    # The page: a tab of a center that is stored is a page of its own, because all of their forms
    # together would take half a second to render.

    def _find_tabs(self, request: HttpRequest, obj: Model) -> dict[str, Any]:
        """The inlines that the user may see, by the names of their tabs."""
        return {
            str(inline.model._meta.model_name): inline
            for inline in self.inlines
            if inline(self.model, self.admin_site).has_view_or_change_permission(request, obj)
        }

    def get_inlines(self, request: HttpRequest, obj: Model | None) -> list[type]:
        """Rooms, services, terms and closures are added after the first save."""
        if obj is None:
            return [OpeningHoursInline, RateInline, CenterImageInline, LandmarkInline]
        chosen = self._find_tabs(request, obj).get(request.GET.get("tab", ""))
        return [chosen] if chosen else []

    def get_inline_instances(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        inlines: list[Any] = super().get_inline_instances(request, obj)
        for inline in inlines:
            inline.tab = obj is None
        return inlines

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        is_tab = obj is not None and self.get_inlines(request, obj)
        return () if is_tab else super().get_fieldsets(request, obj)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        if (center := kwargs.get("obj")) is not None:
            tabs = self._find_tabs(request, center)
            chosen = request.GET.get("tab", "") if request.GET.get("tab") in tabs else ""
            titles = {name: each.model._meta.verbose_name_plural for name, each in tabs.items()}
            context["tab_list"] = [
                {
                    "models": [{"name": str(self.opts), "detail": True}],
                    "items": [
                        {
                            "title": capfirst(title),
                            "link": f"?tab={name}",
                            "active": name == chosen,
                            "has_permission": True,
                        }
                        for name, title in {"": "general", **titles}.items()
                    ],
                }
            ]
        return super().render_change_form(request, context, *args, **kwargs)

    def response_change(self, request: HttpRequest, obj: models.Center) -> HttpResponse:
        response = super().response_change(request, obj)
        if "_continue" in request.POST:
            return HttpResponseRedirect(request.get_full_path())
        return response

    def get_timeline_url(self, obj: models.Center) -> str:
        return f"{reverse('admin:reservations_timeline')}?center={obj.pk}"

    def get_time_zone(self, request: HttpRequest, object_id: str | None) -> ZoneInfo | None:
        return get_center_zone(object_id)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: Any) -> None:
        super().save_formset(request, form, formset, change)
        if formset.model is models.Rate:
            for rate in (*formset.new_objects, *(row for row, _ in formset.changed_objects)):
                for warning in find_price_warnings(rate):
                    messages.warning(request, f"{rate.name}: {warning}")
        if (
            formset.model is models.Terms
            and formset.new_objects
            and form.instance.terms is None
            and form.instance.all_terms.count() == len(formset.new_objects)
        ):
            # Without this, the first terms that an owner has just written would not hold. Later
            # ones may be meant for one room.
            form.instance.terms = formset.new_objects[0]
            form.instance.save(update_fields=["terms"])
            text = "The center has these terms now: choose others on the first tab."
            messages.info(request, f"{form.instance.terms}: {text}")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        super().save_model(request, obj, form, change)
        if form.former_zone not in {"", obj.time_zone_id}:
            time_zone_changed.send(
                models.Center,
                center=obj,
                former_zone=form.former_zone,
                keeps_instants=bool(form.cleaned_data["keeps_instants"]),
                by=request.user,
                now=timezone.now(),
            )

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except SlotUnavailable as error:
            messages.error(request, error.message)
            return HttpResponseRedirect(request.get_full_path())

    @admin.display(description="opening hours")
    def opening_hours_summary(self, center: models.Center) -> str:
        return (hours.format_week(center.opening_hours.all()) if center.pk else "") or "-"

    @admin.display(description="search text")
    def searchable_text(self, center: models.Center) -> str:
        return center.search_text or "-"
