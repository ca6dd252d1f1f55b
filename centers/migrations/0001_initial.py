import datetime

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import centers.indexes
import roombook.images
import roombook.money


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        # For the index of search_text.
        centers.indexes.Trigrams(),
        migrations.CreateModel(
            name="Center",
            fields=[
                (
                    "id",
                    models.AutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("street1", models.CharField(blank=True, max_length=255, verbose_name="street")),
                (
                    "street2",
                    models.CharField(
                        blank=True, max_length=255, verbose_name="street, second line"
                    ),
                ),
                (
                    "street3",
                    models.CharField(blank=True, max_length=255, verbose_name="street, third line"),
                ),
                ("city", models.CharField(blank=True, max_length=255)),
                (
                    "state",
                    models.CharField(blank=True, max_length=255, verbose_name="state or province"),
                ),
                ("postal_code", models.CharField(blank=True, max_length=255)),
                ("country", models.CharField(blank=True, max_length=255)),
                (
                    "latitude",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(-90),
                            django.core.validators.MaxValueValidator(90),
                        ],
                    ),
                ),
                (
                    "longitude",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(-180),
                            django.core.validators.MaxValueValidator(180),
                        ],
                    ),
                ),
                (
                    "time_zone_id",
                    models.CharField(blank=True, max_length=255, verbose_name="time zone"),
                ),
                ("name", models.CharField(max_length=255)),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Customers see the center. An inactive center cannot be booked.",
                    ),
                ),
                (
                    "is_after_hours_support_enabled",
                    models.BooleanField(
                        default=False,
                        help_text="Can be booked outside its opening hours.",
                        verbose_name="after-hours support",
                    ),
                ),
                ("promo_text", models.CharField(blank=True, max_length=255)),
                ("parking_information", models.TextField(blank=True)),
                (
                    "is_new_location",
                    models.BooleanField(default=False, verbose_name="new location"),
                ),
                (
                    "is_new_low_price",
                    models.BooleanField(default=False, verbose_name="new low price"),
                ),
                (
                    "rank",
                    models.PositiveIntegerField(
                        default=100, help_text="Centers with a lower rank are listed first."
                    ),
                ),
                (
                    "tax_rate",
                    models.DecimalField(
                        decimal_places=3,
                        default=0,
                        max_digits=6,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(100),
                        ],
                        verbose_name="tax (percent)",
                    ),
                ),
                ("x", models.FloatField(editable=False, null=True)),
                ("y", models.FloatField(editable=False, null=True)),
                ("z", models.FloatField(editable=False, null=True)),
                ("name_folded", models.CharField(editable=False, max_length=1024)),
                ("city_folded", models.CharField(editable=False, max_length=1024)),
                ("state_folded", models.CharField(editable=False, max_length=1024)),
                ("state_name_folded", models.CharField(editable=False, max_length=1024)),
                ("postal_code_folded", models.CharField(editable=False, max_length=1024)),
                ("search_text", models.TextField(editable=False)),
            ],
        ),
        migrations.CreateModel(
            name="CenterImage",
            fields=[
                (
                    "id",
                    models.AutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "image",
                    models.ImageField(
                        upload_to=roombook.images.RandomName("centers"),
                        validators=[roombook.images.validate_image],
                    ),
                ),
                (
                    "thumbnail",
                    models.ImageField(
                        blank=True,
                        editable=False,
                        upload_to=roombook.images.RandomName("centers/thumbnails"),
                    ),
                ),
                (
                    "position",
                    models.PositiveIntegerField(
                        default=0, help_text="Pictures with a lower position are shown first."
                    ),
                ),
                (
                    "center",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="images",
                        to="centers.center",
                    ),
                ),
            ],
            options={
                "ordering": ["position", "pk"],
            },
        ),
        migrations.CreateModel(
            name="Landmark",
            fields=[
                (
                    "id",
                    models.AutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("description", models.TextField(blank=True)),
                ("type", models.CharField(blank=True, max_length=255)),
                (
                    "center",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="landmarks",
                        to="centers.center",
                    ),
                ),
            ],
            options={
                "ordering": ["name", "pk"],
            },
        ),
        migrations.CreateModel(
            name="Neighborhood",
            fields=[
                (
                    "id",
                    models.AutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "original_name",
                    models.CharField(
                        blank=True,
                        help_text="The name on maps, if it differs.",
                        max_length=255,
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("city", models.CharField(blank=True, max_length=255)),
                (
                    "state",
                    models.CharField(blank=True, max_length=255, verbose_name="state or province"),
                ),
                ("custom_title", models.CharField(blank=True, max_length=255)),
                ("landing_page_content", models.TextField(blank=True)),
                ("coworking_landing_page_content", models.TextField(blank=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("name"),
                        django.db.models.functions.text.Lower("city"),
                        django.db.models.functions.text.Lower("state"),
                        name="neighborhood_unique_in_city",
                        violation_error_message="This city already has a neighborhood with this name.",
                    )
                ],
            },
        ),
        migrations.AddField(
            model_name="center",
            name="neighborhood",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="centers",
                to="centers.neighborhood",
            ),
        ),
        migrations.CreateModel(
            name="OpeningHours",
            fields=[
                (
                    "id",
                    models.AutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "weekday",
                    models.PositiveSmallIntegerField(
                        choices=[
                            (0, "Monday"),
                            (1, "Tuesday"),
                            (2, "Wednesday"),
                            (3, "Thursday"),
                            (4, "Friday"),
                            (5, "Saturday"),
                            (6, "Sunday"),
                        ]
                    ),
                ),
                ("opens", models.TimeField()),
                ("closes", models.TimeField(help_text="00:00 is midnight at the end of the day.")),
                (
                    "center",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="opening_hours",
                        to="centers.center",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "opening hours",
                "ordering": ["weekday", "opens"],
            },
        ),
        migrations.CreateModel(
            name="Rate",
            fields=[
                (
                    "id",
                    models.AutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(help_text="Only staff see the name.", max_length=255)),
                ("is_flat_rate", models.BooleanField(default=False, verbose_name="flat rate")),
                (
                    "flat_rate",
                    roombook.money.MoneyField(
                        blank=True,
                        decimal_places=2,
                        max_digits=12,
                        null=True,
                        verbose_name="flat price",
                    ),
                ),
                (
                    "hourly",
                    roombook.money.MoneyField(
                        blank=True,
                        decimal_places=2,
                        max_digits=12,
                        null=True,
                        verbose_name="per hour",
                    ),
                ),
                (
                    "half_day",
                    roombook.money.MoneyField(
                        blank=True,
                        decimal_places=2,
                        help_text="Up to 4 hours.",
                        max_digits=12,
                        null=True,
                        verbose_name="per half day",
                    ),
                ),
                (
                    "full_day",
                    roombook.money.MoneyField(
                        blank=True,
                        decimal_places=2,
                        max_digits=12,
                        null=True,
                        verbose_name="per day",
                    ),
                ),
                (
                    "setup_fee",
                    roombook.money.MoneyField(
                        blank=True,
                        decimal_places=2,
                        max_digits=12,
                        null=True,
                        verbose_name="set-up fee",
                    ),
                ),
                (
                    "bill_in_blocks",
                    models.BooleanField(
                        default=False,
                        help_text="Otherwise bookings are rounded up to the next quarter of an hour.",
                        verbose_name="round up to full hours",
                    ),
                ),
                (
                    "description",
                    models.CharField(
                        blank=True,
                        help_text="Shown to customers. Leave empty to list the prices.",
                        max_length=255,
                    ),
                ),
                (
                    "center",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rates",
                        to="centers.center",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ResourceType",
            fields=[
                (
                    "id",
                    models.AutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                (
                    "is_service",
                    models.BooleanField(default=False, help_text="A type of service, not of room."),
                ),
                (
                    "position",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Types with a lower position are listed first in filters.",
                    ),
                ),
                (
                    "internal",
                    models.BooleanField(
                        default=False, help_text="Customers cannot filter by this type."
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("name"),
                        name="resource_type_name_unique",
                        violation_error_message="There is already a type with this name.",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="MeetingRoom",
            fields=[
                (
                    "id",
                    models.AutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                (
                    "capacity",
                    models.PositiveIntegerField(
                        validators=[django.core.validators.MinValueValidator(1)]
                    ),
                ),
                (
                    "is_live_inventory",
                    models.BooleanField(
                        default=True,
                        help_text="Bookings are confirmed at once. Otherwise staff must approve each booking.",
                        verbose_name="instant booking",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        default=True, help_text="Customers see the room.", verbose_name="active"
                    ),
                ),
                (
                    "is_blocked",
                    models.BooleanField(
                        default=False,
                        help_text="The room is shown but cannot be booked.",
                        verbose_name="out of service",
                    ),
                ),
                (
                    "provider",
                    models.CharField(
                        blank=True, help_text="The company that runs the room.", max_length=255
                    ),
                ),
                (
                    "picture",
                    models.ImageField(
                        blank=True,
                        upload_to=roombook.images.RandomName("rooms"),
                        validators=[roombook.images.validate_image],
                    ),
                ),
                (
                    "picture_thumbnail",
                    models.ImageField(
                        blank=True,
                        editable=False,
                        upload_to=roombook.images.RandomName("rooms/thumbnails"),
                    ),
                ),
                (
                    "turnaround_minutes",
                    models.PositiveIntegerField(
                        default=0, help_text="Minutes that stay free between two bookings."
                    ),
                ),
                (
                    "grid_minutes",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Minutes. Leave empty for the default.",
                        null=True,
                        verbose_name="time slot",
                    ),
                ),
                (
                    "minimum_minutes",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Minutes. Leave empty for the default.",
                        null=True,
                        verbose_name="shortest booking",
                    ),
                ),
                (
                    "maximum_minutes",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Minutes. Leave empty for the default.",
                        null=True,
                        verbose_name="longest booking",
                    ),
                ),
                (
                    "booking_window_days",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Days. Leave empty for the default.",
                        null=True,
                        verbose_name="booking window",
                    ),
                ),
                (
                    "center",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rooms",
                        to="centers.center",
                    ),
                ),
                (
                    "rate",
                    models.ForeignKey(
                        blank=True,
                        help_text="A room without a rate is not shown and cannot be booked.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rooms",
                        to="centers.rate",
                    ),
                ),
                (
                    "resource_type",
                    models.ForeignKey(
                        limit_choices_to={"is_service": False},
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="rooms",
                        to="centers.resourcetype",
                        verbose_name="type",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Service",
            fields=[
                (
                    "id",
                    models.AutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("description", models.TextField(blank=True)),
                (
                    "bill_at_center",
                    models.BooleanField(
                        default=False,
                        help_text="Customers pay at the center, not with the booking.",
                    ),
                ),
                (
                    "minimum_booking",
                    models.PositiveIntegerField(
                        default=0, help_text="The minimum number of hours or pieces that is billed."
                    ),
                ),
                (
                    "needs_duration",
                    models.BooleanField(
                        default=False, help_text="Customers choose a number of hours."
                    ),
                ),
                (
                    "needs_quantity",
                    models.BooleanField(
                        default=False, help_text="Customers choose a number of pieces."
                    ),
                ),
                (
                    "position",
                    models.PositiveIntegerField(
                        default=0, help_text="Services with a lower position are listed first."
                    ),
                ),
                ("is_active", models.BooleanField(default=True, verbose_name="active")),
                (
                    "center",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="services",
                        to="centers.center",
                    ),
                ),
                (
                    "rate",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="services",
                        to="centers.rate",
                    ),
                ),
                (
                    "resource_type",
                    models.ForeignKey(
                        limit_choices_to={"is_service": True},
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="services",
                        to="centers.resourcetype",
                        verbose_name="type",
                    ),
                ),
            ],
            options={
                "ordering": ["position", "name", "pk"],
            },
        ),
        migrations.CreateModel(
            name="Favorite",
            fields=[
                (
                    "id",
                    models.AutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "center",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="favorites",
                        to="centers.center",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="favorites",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "center"), name="favorite_once_an_account"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Closure",
            fields=[
                (
                    "id",
                    models.AutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("starts_at", models.DateTimeField(help_text="In the center's local time.")),
                ("ends_at", models.DateTimeField(help_text="In the center's local time.")),
                ("reason", models.CharField(blank=True, max_length=255)),
                (
                    "center",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="closures",
                        to="centers.center",
                    ),
                ),
                (
                    "room",
                    models.ForeignKey(
                        blank=True,
                        help_text="Leave empty to close the whole center.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="closures",
                        to="centers.meetingroom",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["center", "ends_at"], name="closure_of_center")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("starts_at__lt", models.F("ends_at"))),
                        name="closure_starts_before_it_ends",
                        violation_error_message="A closure starts before it ends.",
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="center",
            index=models.Index(fields=["latitude", "longitude"], name="center_place"),
        ),
        migrations.AddIndex(
            model_name="center",
            index=models.Index(fields=["city_folded"], name="center_city"),
        ),
        migrations.AddIndex(
            model_name="center",
            index=centers.indexes.PostgresGinIndex(
                fields=["search_text"], name="center_search_text", opclasses=["gin_trgm_ops"]
            ),
        ),
        migrations.AddConstraint(
            model_name="center",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("latitude__isnull", True), ("longitude__isnull", True)),
                    models.Q(
                        ("latitude__isnull", False),
                        ("latitude__range", (-90, 90)),
                        ("longitude__isnull", False),
                        ("longitude__range", (-180, 180)),
                    ),
                    _connector="OR",
                ),
                name="center_is_on_the_map_or_not",
                violation_error_message="Latitude and longitude come together.",
            ),
        ),
        migrations.AddConstraint(
            model_name="center",
            constraint=models.CheckConstraint(
                condition=models.Q(("tax_rate__range", (0, 100))), name="center_tax_is_a_percentage"
            ),
        ),
        migrations.AddConstraint(
            model_name="center",
            constraint=models.CheckConstraint(
                condition=models.Q(("time_zone_id", ""), _negated=True),
                name="center_has_a_time_zone",
                violation_error_message="A center needs a time zone.",
            ),
        ),
        migrations.AddConstraint(
            model_name="openinghours",
            constraint=models.CheckConstraint(
                condition=models.Q(("weekday__range", (0, 6))), name="opening_hours_on_a_weekday"
            ),
        ),
        migrations.AddConstraint(
            model_name="openinghours",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("closes__gt", models.F("opens")),
                    ("closes", datetime.time(0, 0)),
                    _connector="OR",
                ),
                name="opening_hours_open_before_they_close",
                violation_error_message="Closing comes after opening; 00:00 is midnight.",
            ),
        ),
        migrations.AddConstraint(
            model_name="openinghours",
            constraint=models.UniqueConstraint(
                fields=("center", "weekday", "opens"), name="opening_hours_once_a_start"
            ),
        ),
        migrations.AddConstraint(
            model_name="rate",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("flat_rate__isnull", True), ("flat_rate__gte", 0), _connector="OR"
                ),
                name="rate_flat_rate_is_not_negative",
                violation_error_message="A price must not be negative.",
            ),
        ),
        migrations.AddConstraint(
            model_name="rate",
            constraint=models.CheckConstraint(
                condition=models.Q(("hourly__isnull", True), ("hourly__gte", 0), _connector="OR"),
                name="rate_hourly_is_not_negative",
                violation_error_message="A price must not be negative.",
            ),
        ),
        migrations.AddConstraint(
            model_name="rate",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("half_day__isnull", True), ("half_day__gte", 0), _connector="OR"
                ),
                name="rate_half_day_is_not_negative",
                violation_error_message="A price must not be negative.",
            ),
        ),
        migrations.AddConstraint(
            model_name="rate",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("full_day__isnull", True), ("full_day__gte", 0), _connector="OR"
                ),
                name="rate_full_day_is_not_negative",
                violation_error_message="A price must not be negative.",
            ),
        ),
        migrations.AddConstraint(
            model_name="rate",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("setup_fee__isnull", True), ("setup_fee__gte", 0), _connector="OR"
                ),
                name="rate_setup_fee_is_not_negative",
                violation_error_message="A price must not be negative.",
            ),
        ),
        migrations.AddConstraint(
            model_name="rate",
            constraint=models.UniqueConstraint(
                models.F("center"),
                django.db.models.functions.text.Lower("name"),
                name="rate_name_unique_in_center",
            ),
        ),
        migrations.AddConstraint(
            model_name="meetingroom",
            constraint=models.CheckConstraint(
                condition=models.Q(("capacity__gte", 1)), name="room_seats_somebody"
            ),
        ),
        migrations.AddConstraint(
            model_name="meetingroom",
            constraint=models.UniqueConstraint(
                models.F("center"),
                django.db.models.functions.text.Lower("name"),
                name="room_name_unique_in_center",
                violation_error_message="This center already has a room with this name.",
            ),
        ),
        migrations.AddConstraint(
            model_name="meetingroom",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("grid_minutes__isnull", True),
                    ("grid_minutes__range", (1, 1440)),
                    _connector="OR",
                ),
                name="room_grid_within_a_day",
                violation_error_message="A time slot is 1 to 1440 minutes.",
            ),
        ),
        migrations.AddConstraint(
            model_name="meetingroom",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("minimum_minutes__isnull", True),
                    ("maximum_minutes__isnull", True),
                    ("minimum_minutes__lte", models.F("maximum_minutes")),
                    _connector="OR",
                ),
                name="room_shortest_not_above_longest",
                violation_error_message="The shortest booking must not be longer than the longest.",
            ),
        ),
        migrations.AddConstraint(
            model_name="service",
            constraint=models.UniqueConstraint(
                models.F("center"),
                django.db.models.functions.text.Lower("name"),
                name="service_name_unique_in_center",
                violation_error_message="This center already has a service with this name.",
            ),
        ),
    ]
