"""The pages on which staff import and export the rows of a list.

A file is kept when it is sent; its page asks for the check, which tells how far it is while it
works, and shows what would change. Confirming checks the very same file again: where that comes
out otherwise than the preview did, nothing is written and the new preview is shown.
"""

import copy
import itertools
import json
import logging
from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.messages import get_messages
from django.core.exceptions import PermissionDenied
from django.http import (
    FileResponse,
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
    QueryDict,
    StreamingHttpResponse,
)
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from unfold.widgets import UnfoldAdminFileFieldWidget

from roombook.backoffice.typing_bases import ModelAdminBase
from roombook.imports import files
from roombook.imports.checking import Check
from roombook.imports.exporting import Export
from roombook.imports.files import InvalidFile
from roombook.imports.models import Upload
from roombook.imports.plan import Checked, Origin, Plan
from roombook.imports.sheet import ImportRights, SpreadsheetResource
from roombook.imports.writing import ImportRefused, write
from roombook.middleware import get_client_address

logger = logging.getLogger(__name__)

# So many rows of each kind are shown; all are counted.
SHOWN = 300
FORMATS = {"csv": "text/csv; charset=utf-8", "xlsx": files.XLSX}
EXPORT = "_export"

News = Iterator[dict[str, Any]]


class FileForm(forms.Form):
    """A file to import."""

    file = forms.FileField(
        label="File",
        help_text=f"CSV (UTF-8) or .xlsx, at most {files.MAX_ROWS:,} rows"
        f" and {files.MAX_BYTES // 2**20} MB.",
        widget=UnfoldAdminFileFieldWidget(attrs={"accept": ".csv,.xlsx,text/csv," + files.XLSX}),
        error_messages={"required": "Choose a file.", "empty": "The file is empty."},
    )

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > files.MAX_BYTES:
            raise forms.ValidationError(
                f"The file is larger than {files.MAX_BYTES // 2**20} MB: split it."
            )
        return file


class ImportExportAdminMixin(ModelAdminBase):
    """A ModelAdmin with pages to import and export; `sheet` says what. Stands before ModelAdmin."""

    sheet: type[SpreadsheetResource]
    change_list_template = "imports/change_list.html"

    def get_urls(self) -> list[Any]:
        return [*Pages(self).urls(), *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        links = Pages(self).links(request)
        return super().changelist_view(request, {**(extra_context or {}), **links})


class Pages:
    """The pages that import and export the rows of one list."""

    def __init__(self, model_admin: Any) -> None:
        self.model_admin = model_admin
        self.sheet: type[SpreadsheetResource] = model_admin.sheet
        self.site = model_admin.admin_site

    def urls(self) -> list[Any]:
        view = self.site.admin_view
        return [
            path("import/", view(self.import_view), name=self._name("import")),
            path("import/<int:pk>/", view(self.upload_view), name=self._name("upload")),
            path("import/<int:pk>/check/", view(self.check_view), name=self._name("check")),
            path("import/<int:pk>/write/", view(self.write_view), name=self._name("write")),
            path("export/", view(self.export_view), name=self._name("export")),
        ]

    def links(self, request: HttpRequest) -> dict[str, str]:
        """Where this person gets from the list; to an export with its search and filters."""
        allowed = self.sheet.allowed_for(request.user)
        asked = f"?{request.GET.urlencode()}" if request.GET else ""
        return {
            "import_link": self._link("import") if allowed.may_import else "",
            "export_link": self._link("export") + asked if allowed.may_export else "",
        }

    # Import

    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Take a file."""
        allowed = self._may(request, "may_import")
        is_sent = request.method == "POST"
        form = FileForm(request.POST, request.FILES) if is_sent else FileForm()
        if is_sent and form.is_valid():
            file = form.cleaned_data["file"]
            upload = Upload.keep(
                now=timezone.now(),
                user=request.user,
                sheet=self.sheet.name,
                file_name=file.name[-255:],
                content=file.read(),
            )
            return HttpResponseRedirect(self._link("upload", upload.pk))
        return self._page(
            request,
            "imports/import.html",
            title=f"Import {self.sheet.plural()}",
            form=form,
            help=self._help(),
            has_id="id" in self.sheet.columns(),
            known_by=" and ".join(self.sheet.key),
            export_link=self._link("export") if allowed.may_export else "",
        )

    def _help(self) -> list[dict[str, str]]:
        return [{"name": column.column_name, "how": column.how} for column in self.sheet.in_order()]

    def upload_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The page of a file: the check works on it, then its preview is here."""
        self._may(request, "may_import")
        upload = self._upload(request, pk)
        return self._page(
            request,
            "imports/upload.html",
            title=f"Import {self.sheet.plural()}",
            upload=upload,
            check=self._link("check", pk),
        )

    def check_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        allowed = self._may(request, "may_import")
        upload = self._upload(request, pk)
        return self._told(self._check(request, allowed, upload))

    def _check(self, request: HttpRequest, allowed: ImportRights, upload: Upload) -> News:
        check = Check(self.sheet(allowed), bytes(upload.content))
        try:
            yield from _progress(check)
        except InvalidFile as error:
            yield {"html": self._fragment(request, "bad_file", upload, why=str(error))}
        else:
            yield {"html": self._preview(request, upload, check.plan)}

    def _preview(self, request: HttpRequest, upload: Upload, plan: Plan, *, why: str = "") -> str:
        new = plan.of(Checked.NEW)[:SHOWN]
        # Those in which one of these rows says something.
        columns = [name for name in plan.columns if any(row.now(name) for row in new)]
        return self._fragment(
            request,
            "preview",
            upload,
            why=why,
            plan=plan,
            counts=plan.counts,
            told=told(plan.counts),
            errors=plan.of(Checked.ERROR)[:SHOWN],
            changed=plan.of(Checked.CHANGED)[:SHOWN],
            new=[
                {"number": row.number, "cells": [row.now(name) for name in columns]} for row in new
            ],
            new_columns=columns,
            noted=[row for row in plan.rows if row.notes][:SHOWN],
            shown=SHOWN,
            write=self._link("write", upload.pk),
        )

    def write_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        allowed = self._may(request, "may_import")
        upload = self._upload(request, pk)
        return self._told(self._write(request, allowed, upload, request.POST.get("digest", "")))

    def _write(
        self, request: HttpRequest, allowed: ImportRights, upload: Upload, digest: str
    ) -> News:
        check = Check(self.sheet(allowed), bytes(upload.content))
        try:
            yield from _progress(check)
        except InvalidFile as error:
            yield {"html": self._fragment(request, "bad_file", upload, why=str(error))}
            return
        sheet, plan = check.sheet, check.plan
        if plan.digest != digest:
            why = "Something changed since the preview: this is what the file would do now."
            yield {"html": self._preview(request, upload, plan, why=why)}
            return
        yield {"done": len(plan.rows), "of": len(plan.rows), "what": "rows checked; writing"}
        origin = Origin(
            file=upload.file_name,
            at=timezone.now(),
            actor=request.user,
            address=get_client_address(request) or None,
            request=request,
        )
        try:
            write(sheet, plan, origin)
        except ImportRefused as refused:
            yield {"html": self._fragment(request, "refused", upload, why=str(refused))}
            return
        upload.delete()
        counts = plan.counts
        logger.info("%s imported %s: %s", request.user.pk, sheet.name, counts)
        # Too late for the messages of the next page: this answer has begun.
        notes = [each.message for each in get_messages(request)]
        yield {"html": self._fragment(request, "done", upload, told=told(counts), notes=notes)}

    def _told(self, news: News) -> StreamingHttpResponse:
        """How far the work is, line by line; the last line has the page's new content."""

        def lines() -> Iterator[bytes]:
            try:
                for each in news:
                    yield json.dumps(each).encode() + b"\n"
            except Exception:
                # The status is sent already.
                logger.exception("An import failed")
                text = "Something went wrong, and nothing was written. The log tells more."
                yield json.dumps({"html": f'<p class="imports-why">{text}</p>'}).encode() + b"\n"

        response = StreamingHttpResponse(lines(), content_type="application/x-ndjson")
        # A proxy passes each line on when it comes.
        response["X-Accel-Buffering"] = "no"
        response["Cache-Control"] = "no-store"
        return response

    # Export

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Offer what the list shows, by its search and filters, and send it."""
        allowed = self._may(request, "may_export")
        params = request.GET.copy()
        wanted = params.pop(EXPORT, [""])[-1]
        if wanted not in FORMATS:
            return self._page(
                request,
                "imports/export.html",
                title=f"Export {self.sheet.plural()}",
                is_filtered=bool(self._filters(params)),
                all_link=self._link("export"),
                links=[
                    (name, f"{self._link('export')}?{_with(self._filters(params), name)}")
                    for name in FORMATS
                ],
                most=f"{files.MAX_ROWS:,}",
                import_link=self._link("import") if allowed.may_import else "",
                known_by="id" if "id" in self.sheet.columns() else self.sheet.key[0],
            )
        sheet = self.sheet(allowed)
        try:
            export = Export(sheet, self._listed(request, sheet, params), by=request.user)
        except IncorrectLookupParameters:
            return HttpResponseRedirect(self._link("export"))
        logger.info("%s exports %s as %s", request.user.pk, sheet.name, wanted)
        name = f"{sheet.name}-{timezone.now():%Y-%m-%d}.{wanted}"
        if wanted == "csv":
            # With the mark by which spreadsheets know UTF-8.
            lines = itertools.chain(["\ufeff"], export.csv())
            content = (line.encode() for line in lines)
            response: HttpResponseBase = StreamingHttpResponse(content, FORMATS[wanted])
            response["Content-Disposition"] = f'attachment; filename="{name}"'
            response["X-Accel-Buffering"] = "no"
        else:
            try:
                file = export.xlsx()
            except InvalidFile as error:
                return self._page(
                    request, "imports/export.html", title="Export", why=str(error), links=[]
                )
            response = FileResponse(
                file, as_attachment=True, filename=name, content_type=FORMATS[wanted]
            )
        response["Cache-Control"] = "no-store"
        return response

    def _filters(self, params: QueryDict) -> QueryDict:
        """What narrows the list down: not how it is sorted and paged."""
        kept = params.copy()
        for name in ("o", "p", "all", "e", EXPORT):
            kept.pop(name, None)
        return kept

    def _listed(self, request: HttpRequest, sheet: SpreadsheetResource, params: QueryDict) -> Any:
        """The rows that may be exported, narrowed down as the list is."""
        rows = sheet.exported()
        filters = self._filters(params)
        if not filters:
            return rows
        asked = copy.copy(request)
        asked.GET = filters  # type: ignore[assignment]
        changes = self.model_admin.get_changelist_instance(asked)
        listed = changes.get_queryset(asked).order_by().values("pk")
        return rows.filter(pk__in=listed)

    # What the pages share

    def _may(self, request: HttpRequest, what: str) -> ImportRights:
        allowed = self.sheet.allowed_for(request.user)
        if not getattr(allowed, what):
            raise PermissionDenied
        return allowed

    def _upload(self, request: HttpRequest, pk: int) -> Upload:
        """A file of one's own."""
        found = Upload.objects.filter(pk=pk, user=request.user.pk, sheet=self.sheet.name).first()
        if found is None:
            raise Http404
        return found

    def _name(self, page: str) -> str:
        opts = self.model_admin.opts
        return f"{opts.app_label}_{opts.model_name}_{page}"

    def _link(self, page: str, *args: int) -> str:
        return reverse(f"admin:{self._name(page)}", args=args)

    def _page(self, request: HttpRequest, template: str, **context: Any) -> TemplateResponse:
        return TemplateResponse(
            request,
            template,
            {
                **self.site.each_context(request),
                "opts": self.model_admin.opts,
                "sheet": self.sheet,
                "plural": self.sheet.plural(),
                "list_link": self._link("changelist"),
                "import_link": self._link("import"),
                **context,
            },
        )

    def _fragment(self, request: HttpRequest, name: str, upload: Upload, **context: Any) -> str:
        context |= {
            "upload": upload,
            "upload_link": self._link("upload", upload.pk) if upload.pk else "",
            "plural": self.sheet.plural(),
            "list_link": self._link("changelist"),
            "import_link": self._link("import"),
        }
        return render_to_string(f"imports/{name}.html", context, request)


def _progress(check: Check) -> News:
    for done, of in check.steps():
        yield {"done": done, "of": of, "what": "rows checked"}


def told(counts: dict[str, int]) -> dict[str, str]:
    return {kind: f"{count:,}" for kind, count in counts.items()}


def _with(params: QueryDict, name: str) -> str:
    params = params.copy()
    params[EXPORT] = name
    return params.urlencode()
