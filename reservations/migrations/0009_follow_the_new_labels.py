from decimal import Decimal

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import roombook.money


class Migration(migrations.Migration):
    dependencies = [
        ("centers", "0004_counted_by_staff"),
        ("reservations", "0008_counted_by_staff"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name="allowance",
            name="hours",
            field=models.PositiveIntegerField(help_text="Whole hours: in total, or each month."),
        ),
        migrations.AlterField(
            model_name="allowance",
            name="is_automatic",
            field=models.BooleanField(
                default=True,
                help_text="Off: only if the customer selects it.",
                verbose_name="apply automatically",
            ),
        ),
        migrations.AlterField(
            model_name="partner",
            name="code",
            field=models.CharField(
                help_text="Stored in capitals; customers can type it in any case.",
                max_length=50,
                unique=True,
            ),
        ),
        migrations.AlterField(
            model_name="priceadjustment",
            name="amount",
            field=roombook.money.MoneyField(
                decimal_places=2,
                help_text="Added to the price; a negative amount reduces it.",
                max_digits=12,
            ),
        ),
        migrations.AlterField(
            model_name="priceadjustment",
            name="is_waiver",
            field=models.BooleanField(
                default=False,
                editable=False,
                help_text="Waives the difference when a booking is moved to a more expensive room or time. The next move prices the booking without it.",
                verbose_name="waives a difference",
            ),
        ),
        migrations.AlterField(
            model_name="promocode",
            name="budget",
            field=roombook.money.MoneyField(
                blank=True,
                decimal_places=2,
                max_digits=12,
                null=True,
                verbose_name="maximum total discount",
            ),
        ),
        migrations.AlterField(
            model_name="promocode",
            name="code",
            field=models.CharField(
                help_text="Stored in capitals; customers can type it in any case.",
                max_length=50,
                unique=True,
            ),
        ),
        migrations.AlterField(
            model_name="promocode",
            name="max_uses",
            field=models.PositiveIntegerField(blank=True, null=True, verbose_name="maximum uses"),
        ),
        migrations.AlterField(
            model_name="promocode",
            name="max_uses_per_account",
            field=models.PositiveIntegerField(
                blank=True, null=True, verbose_name="maximum uses per account"
            ),
        ),
        migrations.AlterField(
            model_name="promocode",
            name="percent",
            field=models.DecimalField(
                blank=True,
                decimal_places=2,
                help_text="Or an amount, but not both.",
                max_digits=5,
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="reservation",
            name="allowances_by_hand",
            field=models.BooleanField(
                default=False,
                help_text="The customer selected the allowances; none is applied automatically.",
            ),
        ),
        migrations.AlterField(
            model_name="reservation",
            name="billable_hours",
            field=models.DecimalField(
                decimal_places=2,
                default=Decimal("0"),
                help_text="Hours of the room, as priced.",
                max_digits=7,
            ),
        ),
        migrations.AlterField(
            model_name="reservation",
            name="calendar_sequence",
            field=models.PositiveIntegerField(
                default=0,
                editable=False,
                help_text="Number of the last calendar file that was sent.",
            ),
        ),
        migrations.AlterField(
            model_name="reservation",
            name="cancellation_grace_minutes",
            field=models.PositiveIntegerField(
                help_text="Cancelling within this time after booking is refunded in full."
            ),
        ),
        migrations.AlterField(
            model_name="reservation",
            name="cancellation_notice_hours",
            field=models.PositiveIntegerField(
                help_text="Cancelling earlier than this before the start is refunded in full."
            ),
        ),
        migrations.AlterField(
            model_name="reservation",
            name="created_by",
            field=models.ForeignKey(
                blank=True,
                help_text="The member of staff who created it; empty if the customer did.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            model_name="reservation",
            name="hours_override_reason",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Why a manager allowed it. Applies to this time only.",
                max_length=255,
                verbose_name="booked outside opening hours",
            ),
        ),
        migrations.AlterField(
            model_name="reservation",
            name="is_live",
            field=models.BooleanField(
                default=False,
                help_text="A real booking in an instantly bookable room, charged by a live gateway.",
            ),
        ),
        migrations.AlterField(
            model_name="reservation",
            name="reduced_by",
            field=roombook.money.MoneyField(
                decimal_places=2,
                default=Decimal("0"),
                editable=False,
                help_text="How much cheaper it became after it was paid; this was refunded.",
                max_digits=12,
                verbose_name="price reduced by",
            ),
        ),
        migrations.AlterField(
            model_name="reservation",
            name="refund_promised",
            field=roombook.money.MoneyField(
                blank=True,
                decimal_places=2,
                help_text="The refund that the customer was promised when it was cancelled.",
                max_digits=12,
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="reservation",
            name="reminded_at",
            field=models.DateTimeField(
                blank=True,
                help_text="When the customer was reminded that the hold expires.",
                null=True,
            ),
        ),
        migrations.AlterConstraint(
            model_name="allowance",
            name="allowance_begins_before_it_ends",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("valid_from__isnull", True),
                    ("valid_until__isnull", True),
                    ("valid_from__lte", models.F("valid_until")),
                    _connector="OR",
                ),
                name="allowance_begins_before_it_ends",
                violation_error_message="The end must not be before the start.",
            ),
        ),
        migrations.AlterConstraint(
            model_name="priceadjustment",
            name="price_adjustment_is_not_zero",
            constraint=models.CheckConstraint(
                condition=models.Q(("amount", 0), _negated=True),
                name="price_adjustment_is_not_zero",
                violation_error_message="The amount must not be 0.",
            ),
        ),
        migrations.AlterConstraint(
            model_name="priceadjustment",
            name="price_adjustment_has_a_reason",
            constraint=models.CheckConstraint(
                condition=models.Q(("reason", ""), _negated=True),
                name="price_adjustment_has_a_reason",
                violation_error_message="A change of the price needs a reason.",
            ),
        ),
        migrations.AlterConstraint(
            model_name="promocode",
            name="promo_code_spent_within_budget",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("spent__gte", 0),
                    models.Q(
                        ("budget__isnull", True),
                        ("spent__lte", models.F("budget")),
                        _connector="OR",
                    ),
                ),
                name="promo_code_spent_within_budget",
                violation_error_message="It has given more discount than that already.",
            ),
        ),
        migrations.AlterConstraint(
            model_name="promocode",
            name="promo_code_minimum_spend_not_negative",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("minimum_spend__isnull", True), ("minimum_spend__gte", 0), _connector="OR"
                ),
                name="promo_code_minimum_spend_not_negative",
                violation_error_message="The minimum spend must not be negative.",
            ),
        ),
    ]
