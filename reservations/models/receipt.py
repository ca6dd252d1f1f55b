"""Receipts and credit notes, their numbers, and who issues them (B28)."""

from decimal import Decimal
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce

from roombook import images
from roombook.money import MoneyField, format_amount
from roombook.texts import LineField, ParagraphsField


class Seller(models.Model):
    """Who issues receipts: one row for all centers, and others for centers that have their own."""

    center = models.OneToOneField(
        "centers.Center",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="seller",
        help_text="Leave it empty for all centers that have no seller of their own.",
    )
    legal_name = LineField(max_length=255)
    legal_address = ParagraphsField(help_text="As on a letter, with line breaks.")
    tax_number = LineField(
        max_length=100, blank=True, help_text='With its name: "VAT ID DE123456789".'
    )
    registration = LineField(
        max_length=255,
        blank=True,
        help_text='Such as "Commercial register of Denver, no. 4711".',
    )
    logo = models.ImageField(
        upload_to=images.RandomName("logos"),
        blank=True,
        validators=[images.validate_image],
        help_text="At the top of receipts, and of the page on which customers pay.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                Coalesce("center", 0),
                name="seller_once_for_all_centers",
                violation_error_message="There is already a seller for these centers.",
            ),
        ]

    def __str__(self) -> str:
        return self.legal_name

    def save(self, *args: Any, **kwargs: Any) -> None:
        # A former logo is not deleted: receipts that were issued with it still show it.
        images.process_upload(self, "logo")
        super().save(*args, **kwargs)

    @classmethod
    def find(cls, center_id: int) -> "Seller | None":
        """Return the center's own seller, or else that of all centers."""
        rows = cls._default_manager.filter(Q(center=center_id) | Q(center=None))
        return rows.order_by(F("center").asc(nulls_last=True)).first()


class ReceiptSeries(models.Model):
    """A series of numbers without gaps: its row is locked until a document is stored."""

    name = models.CharField(max_length=20, unique=True)
    last_number = models.PositiveIntegerField(default=0)

    class Meta:
        verbose_name_plural = "receipt series"

    def __str__(self) -> str:
        return self.name


class ReceiptType(models.TextChoices):
    RECEIPT = "Receipt"
    CREDIT_NOTE = "CreditNote", "Credit note"


class Receipt(models.Model):
    """A receipt, or a credit note that takes back a part of earlier receipts. Never changed.

    `content` is what the document says, as texts (reservations/receipts/contents.py). It is
    emptied once it need not be kept any longer; the number and the total stay.
    """

    type = models.CharField(max_length=10, choices=ReceiptType.choices)
    series = models.ForeignKey(ReceiptSeries, models.PROTECT, related_name="receipts")
    number_in_series = models.PositiveIntegerField()
    number = models.CharField(max_length=30, unique=True)
    reservation = models.ForeignKey(
        "reservations.Reservation", models.PROTECT, related_name="receipts"
    )
    issued_at = models.DateTimeField()
    issued_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="The member of staff who issued it; empty if the customer did, or nobody.",
    )
    currency = models.CharField(max_length=3)
    total = MoneyField()
    content = models.JSONField(editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["series", "number_in_series"], name="receipt_number_once_in_its_series"
            ),
            models.CheckConstraint(condition=Q(total__gt=0), name="receipt_total_is_above_zero"),
            models.CheckConstraint(
                condition=Q(type__in=ReceiptType.values), name="receipt_type_is_known"
            ),
        ]
        indexes = [
            # The list in the back office.
            models.Index(fields=["-issued_at", "-id"], name="receipt_by_time"),
            models.Index(fields=["total"], name="receipt_by_total"),
            models.Index(fields=["number_in_series"], name="receipt_by_number_in_series"),
        ]

    def __str__(self) -> str:
        return f"{self.get_type_display()} {self.number}"

    @property
    def signed_total(self) -> Decimal:
        """The total, below zero on a credit note."""
        return self.total if self.type == ReceiptType.RECEIPT else -self.total

    @property
    @admin.display(description="total")
    def formatted_total(self) -> str:
        return format_amount(self.signed_total, self.currency)


class ReceiptEntry(models.Model):
    """What a document says of a payment: the amount paid, or below zero the amount refunded.

    The entries of a payment add up to what of it has a receipt and no credit note.
    """

    receipt = models.ForeignKey(Receipt, models.PROTECT, related_name="entries")
    payment = models.ForeignKey(
        "payments.Payment", models.PROTECT, related_name="receipt_entries", db_index=False
    )
    amount = MoneyField()

    class Meta:
        verbose_name_plural = "receipt entries"
        constraints = [
            # Its index also finds the entries of a payment.
            models.UniqueConstraint(
                fields=["payment", "receipt"], name="receipt_entry_once_per_payment"
            ),
            models.CheckConstraint(condition=~Q(amount=0), name="receipt_entry_is_not_zero"),
        ]

    def __str__(self) -> str:
        return f"{self.amount} of payment {self.payment_id}"
