"""The pages on which staff import and export the rows of a list.

They are those of django-import-export and unfold; what differs is in the package's docstring. One
private method of the library is overridden, `_do_file_export`: it would build a file in memory.
"""

import logging
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from import_export.admin import ImportExportMixin
from import_export.formats.base_formats import CSV, XLSX, Format
from import_export.forms import ConfirmImportForm
from unfold.contrib.import_export.forms import ExportForm, ImportForm
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldBooleanWidget

from roombook.backoffice.spreadsheets import (
    XLSX_CONTENT_TYPE,
    InvalidFile,
    download_csv,
    download_workbook,
)
from roombook.backoffice.typing_bases import ModelAdminBase
from roombook.ids import is_id
from roombook.imports import files
from roombook.imports.files import ImportTable
from roombook.imports.models import CheckIsRunning, RunningCheck, Upload, UploadStorage
from roombook.imports.resources import SpreadsheetResource
from roombook.imports.results import ImportRefused, ImportResult

logger = logging.getLogger(__name__)


class SpreadsheetFormat(Format):
    """CSV or XLSX, recognized by the content of a file."""

    def __init__(
        self, resource_class: type[SpreadsheetResource], encoding: str | None = None
    ) -> None:
        self.resource_class = resource_class

    def get_title(self) -> str:
        return "CSV (UTF-8) or .xlsx"

    def create_dataset(self, in_stream: bytes) -> ImportTable:
        return self.resource_class.read_file(in_stream)

    def can_import(self) -> bool:
        return True


class UploadForm(ImportForm):
    """A file to import."""

    def __init__(self, *args: Any, user: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        field = self.fields["import_file"]
        field.label = "File"
        field.help_text = (
            f"At most {files.MAX_ROWS:,} rows and {files.MAX_BYTES // 2**20} MB."
            " Nothing is written before you have seen what would change."
        )
        field.error_messages |= {"required": "Choose a file.", "empty": "The file is empty."}
        field.widget.attrs["accept"] = f".csv,.xlsx,text/csv,{XLSX_CONTENT_TYPE}"

    def clean_import_file(self) -> Any:
        file = self.cleaned_data["import_file"]
        if file.size > files.MAX_BYTES:
            raise forms.ValidationError(
                f"The file is larger than {files.MAX_BYTES // 2**20} MB: split it."
            )
        # For `write_to_tmp_storage`, which does not get the request.
        file.uploaded_by = self.user
        return file


class ConfirmForm(ConfirmImportForm):
    """The confirmation of a preview: of one's own file, and of what was displayed."""

    digest = forms.CharField(widget=forms.HiddenInput)
    may_clear = forms.BooleanField(required=False, widget=UnfoldBooleanWidget)

    def __init__(
        self, *args: Any, user: Any, resource: type[SpreadsheetResource], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.uploads = Upload.objects.filter(user=user.pk, sheet=resource.name)
        if resource.question:
            _, label, choices = resource.question
            self.fields["answer"] = forms.ChoiceField(
                label=label, choices=choices, required=False, widget=UnfoldAdminSelectWidget
            )

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        upload_id = data.get("import_file_name", "")
        upload = self.uploads.filter(pk=upload_id).first() if is_id(upload_id) else None
        if upload is None:
            raise forms.ValidationError("This file is not here any more: upload it again.")
        # There is one format and one resource, whatever the hidden fields say.
        return data | {"original_file_name": upload.file_name, "format": "0", "resource": "0"}


class ImportExportAdminMixin(ImportExportMixin, ModelAdminBase):
    """A ModelAdmin that imports and exports. Stands before ModelAdmin; set `resource_class`."""

    resource_class: type[SpreadsheetResource]
    export_formats = [CSV, XLSX]
    import_form_class = UploadForm
    confirm_form_class = ConfirmForm
    export_form_class = ExportForm
    tmp_storage_class = UploadStorage
    import_template_name = "imports/import.html"
    export_template_name = "imports/export.html"
    import_export_change_list_template = "imports/change_list.html"
    # Each row is in our own audit log.
    skip_admin_log = True

    # --- Who may do what ------------------------------------------------------------------------

    def get_resource_classes(self, request: HttpRequest) -> list[type[SpreadsheetResource]]:
        return [self.resource_class]

    def get_resource_kwargs(self, request: HttpRequest, **kwargs: object) -> dict[str, object]:
        return {"user": request.user}

    def has_import_permission(self, request: HttpRequest) -> bool:
        return self.resource_class(request.user).can_import

    def has_export_permission(self, request: HttpRequest) -> bool:
        return self.resource_class(request.user).can_export

    # --- Import ---------------------------------------------------------------------------------

    def get_import_formats(self) -> list[Callable[..., Format]]:
        return [partial(SpreadsheetFormat, self.resource_class)]

    def get_import_form_kwargs(self, request: HttpRequest) -> dict[str, Any]:
        return super().get_import_form_kwargs(request) | {"user": request.user}

    def get_confirm_form_kwargs(
        self, request: HttpRequest, import_form: forms.Form | None = None
    ) -> dict[str, Any]:
        return super().get_confirm_form_kwargs(request, import_form) | {
            "user": request.user,
            "resource": self.resource_class,
        }

    def write_to_tmp_storage(self, import_file: Any, input_format: Format) -> UploadStorage:
        upload = Upload.replace(
            now=timezone.now(),
            user=import_file.uploaded_by,
            sheet=self.resource_class.name,
            file_name=import_file.name[-255:],
            content=import_file.read(),
        )
        return UploadStorage(name=str(upload.pk))

    def add_data_read_fail_error_to_form(self, form: forms.Form, e: Exception) -> None:
        if not isinstance(e, InvalidFile):
            raise e
        form.add_error("import_file", str(e))

    def get_import_context_data(self, **kwargs: object) -> dict[str, object]:
        columns = self.resource_class.get_columns()
        return {
            "resource": self.resource_class,
            "columns": [
                (name, self.resource_class.fields[name].widget.help_text) for name in columns
            ],
            "key": " and ".join(self.resource_class.key),
            "has_id": "id" in columns,
        }

    def import_action(self, request: HttpRequest, **kwargs: object) -> HttpResponseBase:
        """Return the page to upload a file, or the preview of an uploaded one."""
        if request.method == "POST":
            return self._run_check(request, self._preview)
        return self._preview(request)

    def _run_check(
        self, request: HttpRequest, view: Callable[[HttpRequest], HttpResponseBase]
    ) -> HttpResponseBase:
        """Run a view that checks a file: one at a time for each user, and not for too long."""
        try:
            with RunningCheck.run(request.user, now=timezone.now()):
                return view(request)
        except (InvalidFile, CheckIsRunning) as error:
            messages.error(request, str(error))
            app_label, model = self.get_model_info()
            return HttpResponseRedirect(reverse(f"admin:{app_label}_{model}_import"))

    def _preview(self, request: HttpRequest) -> TemplateResponse:
        response: TemplateResponse = super().import_action(request)
        context = response.context_data or {}
        if "confirm_form" in context:
            self._bind_confirmation(context)
        return response

    def _bind_confirmation(self, context: dict[str, Any]) -> None:
        """What was displayed can be confirmed, and only if there is something to write."""
        form, result = context["confirm_form"], context["result"]
        form.initial["digest"] = result.digest
        question = self.resource_class.question
        if question and not any(question[0] in row.changes for row in result.rows):
            del form.fields["answer"]
        if losses := result.describe_losses(self.resource_class.singular):
            form.fields["may_clear"].required = True
            form.fields["may_clear"].label = f"Clear these values ({losses})"
        else:
            del form.fields["may_clear"]
        if not result.rows:
            del context["confirm_form"]

    def get_import_data_kwargs(self, *, form: forms.Form, **kwargs: object) -> dict[str, object]:
        names = ("digest", "may_clear", *(["answer"] if self.resource_class.question else []))
        confirmed = {name: form.cleaned_data.get(name) for name in names}
        return kwargs | confirmed | {"now": timezone.now()}

    def process_import(self, request: HttpRequest, **kwargs: object) -> HttpResponseBase:
        """Check the confirmed file again and write it, or return a new preview."""
        return self._run_check(request, self._write)

    def _write(self, request: HttpRequest) -> HttpResponseBase:
        try:
            response: HttpResponseBase = super().process_import(request)
        except ImportRefused as refused:
            messages.error(request, str(refused))
            response = self._preview_again(request, refused.result)
        return response

    def _preview_again(self, request: HttpRequest, result: ImportResult) -> TemplateResponse:
        page_request = copy(request)
        page_request.POST = QueryDict()
        response: TemplateResponse = super().import_action(page_request)
        context = response.context_data or {}
        context["result"] = result
        if not result.has_validation_errors():
            form = self.create_confirm_form(page_request)
            form.initial = request.POST.dict()
            context["confirm_form"] = form
            self._bind_confirmation(context)
        return response

    def add_success_message(self, result: ImportResult, request: HttpRequest) -> None:
        logger.info("%s imported %s: %s", request.user.pk, self.resource_class.name, result.summary)
        messages.success(request, f"Imported: {result.summary}.")

    # --- Export ---------------------------------------------------------------------------------

    def export_action(self, request: HttpRequest) -> HttpResponseBase:
        try:
            response: HttpResponseBase = super().export_action(request)
        except IncorrectLookupParameters:
            response = HttpResponseRedirect(request.path)
        return response

    def init_request_context_data(
        self, request: HttpRequest, form: forms.Form
    ) -> dict[str, object]:
        context: dict[str, object] = super().init_request_context_data(request, form)
        return context | {
            "is_filtered": bool(request.GET.keys() - {"o", "p", "all", "e"}),
            "max_rows": f"{files.MAX_ROWS:,}",
        }

    def get_export_filename(
        self, request: HttpRequest, queryset: QuerySet[Any], file_format: Format
    ) -> str:
        extension = file_format.get_extension()
        return f"{self.resource_class.name}-{timezone.now():%Y-%m-%d}.{extension}"

    def _do_file_export(
        self,
        file_format: Format,
        request: HttpRequest,
        queryset: QuerySet[Any],
        export_form: object = None,
    ) -> HttpResponseBase:
        """Send the file row by row; the library builds it in memory."""
        resource = self.resource_class(request.user)
        logger.info("%s exports %s", request.user.pk, resource.name)
        file_name = self.get_export_filename(request, queryset, file_format)
        if isinstance(file_format, CSV):
            return download_csv(resource.export_csv(queryset), file_name)
        return download_workbook(resource.export_workbook(queryset), file_name)
