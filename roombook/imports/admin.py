"""The pages on which staff import a list: those of django-import-export and unfold."""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from import_export.admin import ImportMixin
from import_export.formats.base_formats import Format
from import_export.forms import ConfirmImportForm
from unfold.contrib.import_export.forms import ImportForm
from unfold.widgets import UnfoldBooleanWidget

from roombook.backoffice.list_export import ListExportMixin
from roombook.backoffice.spreadsheets import (
    XLSX_CONTENT_TYPE,
    CellValue,
    InvalidFile,
    SheetColumn,
)
from roombook.ids import is_id
from roombook.imports import files
from roombook.imports.files import ImportTable
from roombook.imports.models import Upload, UploadStorage
from roombook.imports.resources import SpreadsheetResource
from roombook.imports.results import ImportRefused, ImportResult

logger = logging.getLogger(__name__)


class SpreadsheetFormat(Format):
    """CSV or XLSX, recognized by the content of a file."""

    def __init__(
        self, resource_class: type[SpreadsheetResource[Any]], encoding: str | None = None
    ) -> None:
        self.resource_class = resource_class

    def get_title(self) -> str:
        return "CSV (UTF-8) or .xlsx"

    def create_dataset(self, in_stream: bytes) -> ImportTable:
        table = self.resource_class.read_file(in_stream)
        if len(table) > files.MAX_ROWS_OF_A_PAGE:
            raise InvalidFile(
                f"There are more than {files.MAX_ROWS_OF_A_PAGE:,} rows: split the file, or let"
                " an engineer import it with manage.py import_centers."
            )
        return table


class UploadForm(ImportForm):
    """A file to import."""

    def __init__(self, *args: Any, user: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        field = self.fields["import_file"]
        field.label = "File"
        field.help_text = (
            f"At most {files.MAX_ROWS_OF_A_PAGE:,} rows and {files.MAX_BYTES // 2**20} MB."
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
        self, *args: Any, user: Any, resource: type[SpreadsheetResource[Any]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.resource = resource
        self.uploads = Upload.objects.filter(user=user.pk, sheet=resource.name)

    def describe(self, result: ImportResult) -> None:
        """Ask what the preview has to ask."""
        self.initial["digest"] = result.digest
        if losses := result.describe_losses(self.resource.singular):
            self.fields["may_clear"].required = True
            self.fields["may_clear"].label = f"Clear these values ({losses})"
        else:
            del self.fields["may_clear"]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        upload_id = data.get("import_file_name", "")
        upload = self.uploads.filter(pk=upload_id).first() if is_id(upload_id) else None
        if upload is None:
            raise forms.ValidationError("This file is not here any more: upload it again.")
        # There is one format and one resource, whatever the hidden fields say.
        return data | {"original_file_name": upload.file_name, "format": "0", "resource": "0"}


class ImportExportAdminMixin(ListExportMixin, ImportMixin):
    """A ModelAdmin that imports and exports. Stands before ModelAdmin; set `resource_class`."""

    resource_class: type[SpreadsheetResource[Any]]
    import_form_class = UploadForm
    confirm_form_class = ConfirmForm
    tmp_storage_class = UploadStorage
    import_template_name = "imports/import.html"
    import_export_change_list_template = ListExportMixin.change_list_template
    # Each row is in our own audit log.
    skip_admin_log = True

    def get_resource_classes(self, request: HttpRequest) -> list[type[SpreadsheetResource[Any]]]:
        return [self.resource_class]

    def get_resource_kwargs(self, request: HttpRequest, **kwargs: object) -> dict[str, object]:
        return {"user": request.user}

    def has_import_permission(self, request: HttpRequest) -> bool:
        return self.resource_class(request.user).can_import

    # --- Export ---------------------------------------------------------------------------------

    def has_export_permission(self, request: HttpRequest) -> bool:
        return self.resource_class(request.user).can_export

    @property
    def export_name(self) -> str:
        return self.resource_class.name

    def get_export_columns(self) -> list[SheetColumn]:
        return self.resource_class.get_sheet_columns()

    def iterate_export_rows(
        self, request: HttpRequest, rows: QuerySet[Any]
    ) -> Iterator[Sequence[CellValue]]:
        yield from self.resource_class(request.user).export(rows)

    # --- Import ---------------------------------------------------------------------------------

    def get_import_formats(self) -> list[Callable[..., Format]]:
        return [partial(SpreadsheetFormat, self.resource_class)]

    def get_import_form_kwargs(self, request: HttpRequest) -> dict[str, Any]:
        return super().get_import_form_kwargs(request) | {"user": request.user}

    def get_confirm_form_kwargs(
        self, request: HttpRequest, import_form: forms.Form | None = None
    ) -> dict[str, Any]:
        kwargs: dict[str, Any] = super().get_confirm_form_kwargs(request, import_form)
        return kwargs | {"user": request.user, "resource": self.resource_class}

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
        fields = self.resource_class.fields
        columns = [
            (name, fields[name].widget.help_text) for name in self.resource_class._meta.fields
        ]
        return {"resource": self.resource_class, "columns": columns, "has_id": "id" in fields}

    def get_import_data_kwargs(
        self, request: HttpRequest, form: forms.Form, **kwargs: object
    ) -> dict[str, object]:
        """What the user confirmed; nothing yet for a preview."""
        names = {"digest", "may_clear"} & form.cleaned_data.keys()
        return {name: form.cleaned_data[name] for name in names}

    def import_action(self, request: HttpRequest, **kwargs: object) -> HttpResponseBase:
        if (extension := request.GET.get("template")) in {"csv", "xlsx"}:
            if not self.has_import_permission(request):
                raise PermissionDenied
            examples = self.resource_class(request.user).get_example_rows()
            return self.send_file("template", extension, examples)
        response: Any = self._refuse_or_return(request, super().import_action)
        context = getattr(response, "context_data", {})
        if form := context.get("confirm_form"):
            if not context["result"].rows:
                text = "Everything in this file is stored already: there is nothing to import."
                messages.success(request, text)
                return HttpResponseRedirect(request.path)
            form.describe(context["result"])
        return response

    def process_import(self, request: HttpRequest, **kwargs: object) -> HttpResponseBase:
        return self._refuse_or_return(request, super().process_import)

    def _refuse_or_return(
        self, request: HttpRequest, view: Callable[[HttpRequest], Any]
    ) -> HttpResponseBase:
        try:
            response: HttpResponseBase = view(request)
        except (ImportRefused, InvalidFile) as refused:
            messages.error(request, str(refused))
            app_label, model = self.get_model_info()
            return HttpResponseRedirect(reverse(f"admin:{app_label}_{model}_import"))
        return response

    def process_result(self, result: ImportResult, request: HttpRequest) -> HttpResponseBase:
        if result.has_validation_errors():
            raise ImportRefused("Something changed since the preview: upload the file again.")
        response: HttpResponseBase = super().process_result(result, request)
        return response

    def add_success_message(self, result: ImportResult, request: HttpRequest) -> None:
        logger.info("%s imported %s: %s", request.user.pk, self.resource_class.name, result.summary)
        messages.success(request, f"Imported: {result.summary}.")
