"""Receipts in the back office: the page of a reservation's receipts, the list, and the sellers."""

from collections.abc import Iterator
from decimal import Decimal

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from accounts import roles
from accounts.admin.center_scope import CenterOrAllMixin, CenterTimeMixin
from accounts.admin.date_range import DateRangeFilter
from accounts.models import User
from payments.admin.lists import find_by_columns, link_reservation, parse_payment_search
from reservations.desk.reservation_page import ReservationPageMixin
from reservations.display import format_datetime, get_reservation_url
from reservations.models import Receipt, Reservation, Seller
from reservations.models.receipt import ReceiptType
from reservations.receipts import sending
from reservations.receipts.issuing import get_amount_without_receipt, issue_documents
from reservations.receipts.rendering import build_pdf_response
from roombook import money
from roombook.backoffice.list_export import ListExportMixin
from roombook.backoffice.model_admin import ModelAdmin, ReadOnlyMixin
from roombook.backoffice.spreadsheets import CellValue, SheetColumn
from roombook.backoffice.widgets import AutocompleteFilter
from roombook.errors import InvalidRequest, ReceiptNotAvailable
from roombook.ids import parse_id


class ReceiptPagesMixin(ReservationPageMixin):
    """The receipts of a reservation, next to its page. Comes before ModelAdmin in the bases."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path(
                "<path:object_id>/receipts/",
                view(self.receipts_view),
                name="reservations_reservation_receipts",
            ),
            path(
                "<path:object_id>/receipts/<str:number>.pdf",
                view(self.receipt_file_view),
                name="reservations_receipt_file",
            ),
            *super().get_urls(),
        ]

    def receipts_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """List the receipts. A POST issues what is due and shows it, or sends one by e-mail."""
        reservation = self._get_permitted(request, object_id, roles.VIEW_RECEIPT)
        if request.method == "POST":
            staff = self._require(request, reservation, roles.ADD_RECEIPT)
            if "send" in request.POST:
                self._send(request, reservation)
            else:
                try:
                    issue_documents(reservation, by=staff, now=timezone.now())
                except ReceiptNotAvailable as error:
                    messages.error(request, error.message)
                else:
                    return redirect(get_file_url(reservation.receipts.latest("pk")))
            return redirect(request.path)
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        return self._render_page(request, reservation)

    def receipt_file_view(self, request: HttpRequest, object_id: str, number: str) -> HttpResponse:
        """Show the PDF in the browser."""
        reservation = self._get_permitted(request, object_id, roles.VIEW_RECEIPT)
        receipt = reservation.receipts.exclude(content={}).filter(number=number).first()
        if receipt is None:
            raise Http404
        return build_pdf_response(receipt, is_download=False)

    def _get_permitted(self, request: HttpRequest, object_id: str, permission: str) -> Reservation:
        reservation = self.get_reservation(request, object_id)
        if reservation is None:
            raise Http404
        self._require(request, reservation, permission)
        return reservation

    def _require(self, request: HttpRequest, reservation: Reservation, permission: str) -> User:
        staff = roles.get_staff(request)
        if not roles.has_permission(staff, permission, reservation.room.center_id):
            raise PermissionDenied
        return staff

    def _send(self, request: HttpRequest, reservation: Reservation) -> None:
        rows = reservation.receipts.exclude(content={})
        receipt = rows.filter(pk=parse_id(request.POST["send"]) or 0).first()
        if receipt is None:
            raise Http404
        receipt.reservation = reservation
        try:
            sending.send_receipt(receipt, now=timezone.now())
        except InvalidRequest as error:
            messages.error(request, " ".join(error.fields.values()))
            return
        text = f"{receipt} will be sent to {reservation.user.email} within a minute."
        messages.success(request, text)

    def _render_page(self, request: HttpRequest, reservation: Reservation) -> HttpResponse:
        staff, center = roles.get_staff(request), reservation.room.center_id
        amount = get_amount_without_receipt(reservation)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": reservation,
            "title": f"Receipts of reservation {reservation.pk}",
            "reservation": reservation,
            "back_url": get_reservation_url(reservation.pk),
            "zone": reservation.room.center.zone,
            "receipts": reservation.receipts.order_by("pk"),
            "amount": money.format_amount(amount, reservation.currency) if amount else "",
            "has_seller": Seller.find(center) is not None,
            "can_issue": roles.has_permission(staff, roles.ADD_RECEIPT, center),
            "can_add_seller": roles.has_permission(staff, roles.ADD_SELLER, center),
        }
        return TemplateResponse(request, "admin/reservations/receipts.html", context)


def get_file_url(receipt: Receipt) -> str:
    args = [receipt.reservation_id, receipt.number]
    return reverse("admin:reservations_receipt_file", args=args)


@admin.register(Receipt)
class ReceiptAdmin(ListExportMixin, ReadOnlyMixin, CenterTimeMixin, ModelAdmin):
    """The list of all receipts and credit notes, the latest first, and the accountants' file."""

    center_path = "reservation__room__center"
    list_display = (
        *("number", "type", "issued", "reservation_link", "center", "formatted_total"),
        "document",
    )
    fields = (
        *("number", "type", "issued_at", "issued_by", "reservation_link", "center"),
        *("formatted_total", "document"),
    )
    readonly_fields = ("reservation_link", "center", "formatted_total", "document")
    export_columns = (
        *(SheetColumn("Number", 16), SheetColumn("Type", 12), SheetColumn("Day (local)", 12)),
        *(SheetColumn("Reservation", 12), SheetColumn("Customer", 30), SheetColumn("Center", 24)),
        *(SheetColumn("Rate", 20), SheetColumn("Net", 12), SheetColumn("Tax", 12)),
        *(SheetColumn("Gross", 12), SheetColumn("Currency", 10), SheetColumn("Paid by", 40)),
    )
    list_filter = (
        ("issued_at", DateRangeFilter),
        ("type", ChoicesDropdownFilter),
        ("reservation__room__center", AutocompleteFilter),
    )
    list_filter_submit = True
    list_select_related = ("reservation__room__center",)
    ordering = ("-issued_at", "-pk")
    sortable_by = ()
    search_fields = ("number",)
    search_help_text = (
        "Number, reservation, amount, or last four digits or gateway reference of the payment"
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Receipt]:
        rows: QuerySet[Receipt] = super().get_queryset(request)
        return rows.select_related(*self.list_select_related)

    def search(
        self, request: HttpRequest, rows: QuerySet[Receipt], words: str
    ) -> QuerySet[Receipt]:
        """Find by what the receipt or its payments say; an index answers each of them."""
        values = parse_payment_search(words)
        lookups = {
            "number": words.upper(),
            "number_in_series": values["pk"],
            "reservation": values["pk"],
            "total": values["amount"],
            "entries__payment__card_last4": values["card_last4"],
            "entries__payment__reference": words,
        }
        return rows.filter(pk__in=find_by_columns(rows, lookups))

    result_icon = "receipt_long"

    def get_result_description(self, row: Receipt) -> str:
        return f"{row.formatted_total}, reservation {row.reservation_id}"

    def get_export_rows(self, row: Receipt) -> Iterator[tuple[CellValue, ...]]:
        """A row for each tax of a document; almost all have one.

        The amounts of a credit note are below zero, so that the columns can be added up. What a
        deleted document said is not kept, and so neither is its tax.
        """
        content, sign = row.content, 1 if row.type == ReceiptType.RECEIPT else -1
        taxes: list[tuple[CellValue, ...]] = [
            (label, sign * Decimal(net), sign * Decimal(tax), sign * (Decimal(net) + Decimal(tax)))
            for label, net, tax in content.get("taxes", ())
        ]
        day = row.issued_at.astimezone(row.reservation.room.center.zone).date()
        unknown = ("", None, None, row.signed_total)
        for cells in taxes or [unknown]:
            yield (
                *(row.number, row.get_type_display(), day, row.reservation_id),
                *("".join(content.get("buyer", [])[:1]), self.center(row), *cells),
                *(row.currency, "; ".join(text for text, _ in content.get("payments", []))),
            )

    @admin.display(description="issued")
    def issued(self, receipt: Receipt) -> str:
        return format_datetime(receipt.reservation, receipt.issued_at)

    @admin.display(description="reservation")
    def reservation_link(self, receipt: Receipt) -> str:
        return link_reservation(receipt.reservation_id)

    @admin.display(description="center")
    def center(self, receipt: Receipt) -> str:
        return receipt.reservation.room.center.name

    @admin.display(description="document")
    def document(self, receipt: Receipt) -> str:
        if not receipt.content:
            return "Deleted, as it need not be kept any longer"
        url = get_file_url(receipt)
        return format_html('<a class="underline" href="{}">Open PDF of {}</a>', url, receipt.number)


@admin.register(Seller)
class SellerAdmin(CenterOrAllMixin, ModelAdmin):
    """Who issues receipts."""

    list_display = ("legal_name", "center", "tax_number")
    list_select_related = ("center",)
    fields = ("center", "legal_name", "legal_address", "tax_number", "registration", "logo")
    autocomplete_fields = ("center",)
    search_fields = ("legal_name",)
    search_help_text = "Legal name."
    ordering = ("legal_name", "pk")
