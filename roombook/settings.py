"""All settings. They are read from environment variables; deploy/env.example lists them all.

Variables may also be set in the file `.env` next to manage.py, or in another file that ENV_FILE
names; real environment variables win. Any variable can be read from a file of its own instead:
SECRET_KEY_FILE=/run/secrets/key.
"""

import os
from email.utils import parseaddr
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from roombook import env, env_file
from roombook.api.library_settings import REST_FRAMEWORK, SPECTACULAR_SETTINGS  # noqa: F401 (settings)
from roombook.backoffice.unfold_settings import UNFOLD  # noqa: F401 (a setting)
from roombook.db.configuration import complete_database
from roombook.log_settings import build_logging
from roombook.password_settings import AUTH_PASSWORD_VALIDATORS, PASSWORD_HASHERS  # noqa: F401

BASE_DIR = Path(__file__).resolve().parent.parent

# The path is relative to the folder of manage.py.
ENV_FILE = BASE_DIR / (os.environ.get("ENV_FILE") or ".env")
env_file.load(ENV_FILE, must_exist=bool(os.environ.get("ENV_FILE")))

# --- The service -----------------------------------------------------------------------------

# Development: detailed error pages, no HTTPS, Django serves pictures. Never on a real server.
DEBUG = env.read_bool("DEBUG", default=False)

# Signs sessions. At least 50 random characters, kept secret; required unless DEBUG is on.
SECRET_KEY = env.read_text("SECRET_KEY", "insecure-development-key" if DEBUG else env.Required)

# Former secret keys, separated by commas, so that a new key signs nobody out.
SECRET_KEY_FALLBACKS = env.read_list("SECRET_KEY_FALLBACKS")

# The host names of the service, separated by commas.
ALLOWED_HOSTS = env.read_list("ALLOWED_HOSTS")

# The URL of the service ("https://rooms.example.com"), with which URLs of pictures begin.
# Empty: the host of the request, if it is allowed. Stripe's payments carry it, so that deployments
# that share an account ignore each other's payments.
PUBLIC_URL = env.read_text("PUBLIC_URL").rstrip("/")


# How many of our own proxies add to X-Forwarded-For. Limits by network address depend on it: if it
# is too high, clients can pretend to have any address. 0 with HTTPS stops the start.
TRUSTED_PROXIES = env.read_int("TRUSTED_PROXIES", 0)

# How many machines serve requests. With more than one, nothing may be on the disk of one of them.
MACHINES = env.read_int("MACHINES", 1, least=1)

INSTALLED_APPS = [
    "roombook",
    "roombook.backoffice",
    "roombook.imports",
    "accounts",
    "centers",
    "payments",
    "reservations",
    "django_otp",
    "django_otp.plugins.otp_static",
    "django_otp.plugins.otp_totp",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    # The theme comes before the apps whose templates it replaces.
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "unfold.contrib.import_export",
    "import_export",
    "roombook.backoffice.site.BackofficeAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    # Indexes and constraints of PostgreSQL; SQLite does not need it.
    "django.contrib.postgres",
]

MIDDLEWARE = [
    "roombook.middleware.RequestIdMiddleware",
    "roombook.middleware.RequestLogMiddleware",
    "roombook.middleware.KnownHostMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "roombook.middleware.ContentSecurityPolicyMiddleware",
    "roombook.middleware.RetryAfterMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    # Static files, which whitenoise serves above, are compressed when they are collected.
    "roombook.middleware.CompressionMiddleware",
    "roombook.middleware.ApiMiddleware",
    # For pages only: requests to the API end above.
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "roombook.backoffice.middleware.AuditActorMiddleware",
]

ROOT_URLCONF = "roombook.urls"
WSGI_APPLICATION = "roombook.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- Database -----------------------------------------------------------------------------------

# postgres://user:password@host:5432/name, or sqlite:///file. Several PostgreSQL hosts are
# separated by commas; ?target_session_attrs=read-write finds the primary among them.
DATABASE = env.read_database_url("DATABASE_URL", "sqlite:///db.sqlite3")

# Connect through a pooler in transaction mode (PgBouncer). It does not pass SESSION_LIMITS on: they
# must be set for the role, or the service does not start (see docs/many-machines.md).
PGBOUNCER = env.read_bool("PGBOUNCER", default=False)

# Seconds after which PostgreSQL cancels a statement; 0 means never (for long migrations).
STATEMENT_TIMEOUT = env.read_int("STATEMENT_TIMEOUT", 30)

# Seconds after which PostgreSQL ends what blocks others.
SESSION_LIMITS = {
    "lock_timeout": 4,
    "statement_timeout": STATEMENT_TIMEOUT,
    "idle_in_transaction_session_timeout": 60,
}

# A streaming replica of the database, from which searches and reports read. Empty: none.
DATABASE_REPLICA = env.read_database_url("DATABASE_REPLICA_URL", "")

# A replica that is more seconds behind is left out.
DATABASE_REPLICA_LAG_SECONDS = 5

complete = partial(
    complete_database, base_dir=BASE_DIR, is_pooled=PGBOUNCER, session_limits=SESSION_LIMITS
)
DATABASES = {"default": complete(DATABASE)}
if DATABASE_REPLICA:
    DATABASES["replica"] = complete(DATABASE_REPLICA) | {"TEST": {"MIRROR": "default"}}
    DATABASE_ROUTERS = ["roombook.db.replica.ReplicaRouter"]
# The contract's ids are 32-bit.
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"

# --- Accounts -----------------------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["accounts.roles.CenterRoleBackend"]

# Whether customers create accounts themselves: "open" or "closed". Open in development.
SIGN_UP = env.read_choice("SIGN_UP", "open" if DEBUG else "closed", ["closed", "open"])

# Days after which a token expires if it is not used, and in any case.
TOKEN_IDLE_DAYS = 30
TOKEN_MAX_DAYS = 180
# Whether staff need a second factor to sign in to the back office.
SECOND_FACTOR_REQUIRED = env.read_bool("SECOND_FACTOR_REQUIRED", default=False)
# Valid tokens per account; a further sign-in ends the one that was unused for longest.
TOKENS_MAX = 20

# --- Personal data ------------------------------------------------------------------------------

# How long personal data is kept; 0 is for ever (docs/privacy.md). Here: e-mails, if not waiting.
EMAIL_DAYS = env.read_int("EMAIL_DAYS", 365)
# Entries of the audit log, with the history of reservations.
AUDIT_LOG_DAYS = env.read_int("AUDIT_LOG_DAYS", 1095)
# Names and addresses of attendees: after the meeting, or if it was never booked.
ATTENDEE_DAYS = env.read_int("ATTENDEE_DAYS", 730)
DRAFT_DAYS = 90
# What receipts say; brand and last digits of the cards of payments, and the gateway's reference.
BOOKS_YEARS = env.read_int("BOOKS_YEARS", 10)

# --- API ----------------------------------------------------------------------------------------

# The oldest version of an app that may call ("2.4"); older ones get 426. Empty: all may.
MINIMUM_APP_VERSION = env.read_text("MINIMUM_APP_VERSION")

# The maximum number of centers in the result of a search.
SEARCH_MAX_RESULTS = 50

# For the admin's forms with many rows; uploaded files do not count. The API has its own limit of
# 256 KiB, which it refuses with its error envelope.
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_621_440
DATA_UPLOAD_MAX_NUMBER_FIELDS = 10_000

# --- Money and language -------------------------------------------------------------------------

# The currency of all prices (ISO 4217).
CURRENCY = env.read_text("CURRENCY", "USD")

# The format of amounts, times and dates in texts for people.
LOCALE = env.read_text("LOCALE", "en_US")

LANGUAGE_CODE = "en-us"
# Every page of the back office looks up the names of these: by default, of all that Django knows.
LANGUAGES = [("en", "English")]
USE_I18N = True
FORMAT_MODULE_PATH = "roombook.formats"
# Times are stored in UTC. Each center has its own time zone.
USE_TZ = True
TIME_ZONE = "UTC"

# --- Booking ------------------------------------------------------------------------------------

# Minutes for which a customer's draft holds the room, and hours for which a staff draft does.
HOLD_MINUTES_CUSTOMER = 15
HOLD_HOURS_STAFF = 24

# How many drafts of one customer hold rooms at the same time; one more releases the oldest hold.
HELD_DRAFTS_MAX = env.read_int("HELD_DRAFTS_MAX", 10, least=1)

# How many drafts one customer can create in an hour; 0: without a limit.
CREATES_PER_HOUR = env.read_int("CREATES_PER_HOUR", 60, least=0)

# A draft whose hold ended longer ago than these hours is priced again before it changes or is paid.
DRAFT_PRICE_HOURS = 24

# Minutes for which the room stays held after a card was declined.
HOLD_MINUTES_AFTER_DECLINE = 10

# The time slot of bookings, their minimum and maximum duration, and the booking window.
BOOKING_GRID_MINUTES = 15
BOOKING_MINIMUM_MINUTES = 30
BOOKING_MAXIMUM_DAYS = 14
BOOKING_WINDOW_DAYS = env.read_int("BOOKING_WINDOW_DAYS", 365, least=1)

# Hours in which a center must approve a pending booking.
PENDING_HOURS = env.read_int("PENDING_HOURS", 72, least=1)

# Cancellation is free until this many hours before the start, and this many minutes after booking.
CANCELLATION_NOTICE_HOURS = env.read_int("CANCELLATION_NOTICE_HOURS", 24)
CANCELLATION_GRACE_MINUTES = 15

# Hours before the start at which customers are reminded of a meeting; 0: never.
REMINDER_HOURS = env.read_int("REMINDER_HOURS", 24)

# Whether events are sent to the webhooks of integrators; false on a copy of the live database.
SEND_WEBHOOKS = env.read_bool("SEND_WEBHOOKS", default=True)

# --- Payments -----------------------------------------------------------------------------------

# Who charges cards. "sandbox" charges nobody; with DEBUG off it must be set explicitly.
PAYMENT_GATEWAY = env.read_choice("PAYMENT_GATEWAY", "sandbox", ["sandbox", "stripe"])
PAYMENT_GATEWAY_IS_CHOSEN = env.is_set("PAYMENT_GATEWAY")

# Whether clients may send card numbers; "refuse" answers 400 while the body is read (docs/pci.md).
CARD_NUMBERS = env.read_choice("CARD_NUMBERS", "accept", ["accept", "refuse"])

# Stripe's secret key: sk_live_... moves real money, sk_test_... does not (rk_... keys work too).
STRIPE_SECRET_KEY = env.read_text("STRIPE_SECRET_KEY")

# With a live key: the account's sk_test_..., with which TestMode checks cards without charging.
STRIPE_TEST_SECRET_KEY = env.read_text("STRIPE_TEST_SECRET_KEY")

# The publishable key (pk_...) of the same account and mode, with which apps start Stripe's SDK.
STRIPE_PUBLISHABLE_KEY = env.read_text("STRIPE_PUBLISHABLE_KEY")

# The signing secret (whsec_...) of Stripe's webhook for /webhooks/stripe.
STRIPE_WEBHOOK_SECRET = env.read_text("STRIPE_WEBHOOK_SECRET")

# Another URL than Stripe's own, such as a fake on this machine; only with test keys.
STRIPE_API_BASE = env.read_text("STRIPE_API_BASE").rstrip("/")

# The schemes of apps, such as "myapp", to which a page for cards may return, apart from https.
PAYMENT_RETURN_URLS = env.read_app_schemes("PAYMENT_RETURN_URLS")

# Seconds to wait for the gateway's answer, all requests of one operation together.
GATEWAY_TIMEOUT = env.read_int("GATEWAY_TIMEOUT", 10, least=1)

# Seconds for which one request owns a payment; longer than the gateway can make it wait.
PAYMENT_LEASE_SECONDS = env.read_int("PAYMENT_LEASE_SECONDS", 60, least=1)

# Minutes for which a room is held until the customer has confirmed the payment at the bank.
PAYMENT_ACTION_MINUTES = 15

# --- Mail ---------------------------------------------------------------------------------------

# The mail server: smtp://host:25, smtp+tls://user:password@host:587 (STARTTLS) or
# smtp+ssl://user:password@host:465. consolemail:// prints e-mails, filemail:///folder writes files.
MAIL = env.read_email_url("EMAIL_URL", "consolemail://" if DEBUG else "smtp://127.0.0.1:25")
EMAIL_BACKEND = MAIL["EMAIL_BACKEND"]
EMAIL_HOST = MAIL["EMAIL_HOST"]
EMAIL_PORT = MAIL["EMAIL_PORT"]
EMAIL_HOST_USER = MAIL["EMAIL_HOST_USER"]
EMAIL_HOST_PASSWORD = MAIL["EMAIL_HOST_PASSWORD"]
EMAIL_USE_TLS = MAIL["EMAIL_USE_TLS"]
EMAIL_USE_SSL = MAIL["EMAIL_USE_SSL"]
EMAIL_FILE_PATH = MAIL["EMAIL_FILE_PATH"]

# Seconds to wait for the mail server, at each step.
EMAIL_TIMEOUT = env.read_int("EMAIL_TIMEOUT", 10, least=1)

# The sender of e-mails; its name is the name of the service for customers.
DEFAULT_FROM_EMAIL = env.read_text("DEFAULT_FROM_EMAIL", "roombook <roombook@localhost>")
# The name that authenticator apps show.
OTP_TOTP_ISSUER = parseaddr(DEFAULT_FROM_EMAIL)[0] or "roombook"

# The address for customers' questions: every e-mail shows it, and replies go there. Empty: none.
SUPPORT_EMAIL = env.read_text("SUPPORT_EMAIL")

# --- Files --------------------------------------------------------------------------------------

STATIC_URL = "/static/"
# Where `manage.py collectstatic` puts the static files of the admin.
STATIC_ROOT = BASE_DIR / "staticfiles"
WHITENOISE_USE_FINDERS = DEBUG
WHITENOISE_AUTOREFRESH = DEBUG

# Uploaded pictures: the folder, and the URL under which the web server serves it.
MEDIA_ROOT = BASE_DIR / env.read_text("MEDIA_ROOT", "media")
MEDIA_URL = env.read_text("MEDIA_URL", "/media/")
# Instead of MEDIA_ROOT, a bucket of an S3-compatible storage: https://key:secret@host/bucket. If
# MEDIA_URL has a host, pictures are public there; otherwise their addresses are signed.
MEDIA_BUCKET = env.read_bucket_url("MEDIA_BUCKET_URL")
# MEDIA_ROOT is on a file system that all MACHINES share.
MEDIA_IS_SHARED = env.read_bool("MEDIA_IS_SHARED", default=False)

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": (
            "django.contrib.staticfiles.storage.StaticFilesStorage"
            if DEBUG
            else "whitenoise.storage.CompressedManifestStaticFilesStorage"
        )
    },
}

if MEDIA_BUCKET:
    # Loading the SDK takes a third of a second.
    from roombook.media import build_s3_storage

    STORAGES["default"] = build_s3_storage(MEDIA_BUCKET, MEDIA_URL)
    if not urlsplit(MEDIA_URL).netloc:
        # The back office may show pictures from there.
        MEDIA_URL = (
            f"{MEDIA_BUCKET.scheme}://{MEDIA_BUCKET.netloc.rpartition('@')[2]}{MEDIA_BUCKET.path}/"
        )

# --- Security -----------------------------------------------------------------------------------

# Redirect browsers from http:// to https://. Off only if a proxy does so.
SECURE_SSL_REDIRECT = env.read_bool("SECURE_SSL_REDIRECT", default=not DEBUG)
# Health checks come from the internal network, without TLS.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]

# Seconds for which browsers refuse to connect without HTTPS.
SECURE_HSTS_SECONDS = 0 if DEBUG else 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = True

if TRUSTED_PROXIES:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

SESSION_COOKIE_SECURE = not DEBUG
SESSION_COOKIE_AGE = 60 * 60 * 12  # a working day: staff share computers
# Sign staff out when they close the browser.
SESSION_EXPIRE_AT_BROWSER_CLOSE = True
CSRF_COOKIE_SECURE = not DEBUG
CSRF_COOKIE_HTTPONLY = True
X_FRAME_OPTIONS = "DENY"
# Error reports contain no local variables, which may be a card or a token.
DEFAULT_EXCEPTION_REPORTER_FILTER = "roombook.logging.PrivateExceptionReporterFilter"

SILENCED_SYSTEM_CHECKS = [
    "security.W021",  # HSTS preload binds a whole domain for years: its owner decides
]

# --- Back office --------------------------------------------------------------------------------

LOGIN_REDIRECT_URL = "admin:index"
# UNFOLD, the theme, is imported above.

# --- Logging and metrics ------------------------------------------------------------------------

# DEBUG, INFO, WARNING or ERROR.
LOG_LEVEL = env.read_choice("LOG_LEVEL", "INFO", ["DEBUG", "INFO", "WARNING", "ERROR"])

# Where Prometheus reads metrics (127.0.0.1:9464); a public address stops the start. Empty: nowhere.
METRICS_BIND = env.read_host_and_port("METRICS_BIND")
if METRICS_BIND:
    MIDDLEWARE.insert(0, "roombook.metrics.middleware.MetricsMiddleware")

# The address of a project of Sentry, which gets errors without data of customers. Empty: none.
SENTRY_DSN = env.read_sentry_dsn("SENTRY_DSN")

# RequestLogMiddleware writes one line per request. Both formatters mask card numbers.
LOGGING = build_logging(LOG_LEVEL, is_debug=DEBUG)
