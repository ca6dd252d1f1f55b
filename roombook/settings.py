"""All settings, from environment variables; deploy/env.example lists every one of them.

Values may also stand in a file `.env` beside manage.py (another file: ENV_FILE); the environment
wins over it. Any variable can be given as a file instead: SECRET_KEY_FILE=/run/secrets/key.
"""

import os
from pathlib import Path

from roombook import env

BASE_DIR = Path(__file__).resolve().parent.parent

# Which file holds settings, one NAME=value a line. Relative to the folder of manage.py.
env.load_file(BASE_DIR / os.environ.get("ENV_FILE", ".env"))

# --- What runs here -----------------------------------------------------------------------------

# Development: error pages for engineers, no HTTPS, Django serves pictures. Never on a real server.
DEBUG = env.read_bool("DEBUG", default=False)

# Signs sessions. At least 50 random characters, kept secret; needed unless DEBUG.
SECRET_KEY = env.read_text("SECRET_KEY", "insecure-development-key" if DEBUG else env.Required)

# Former secret keys, so that changing the key signs nobody out. Commas between them.
SECRET_KEY_FALLBACKS = env.read_list("SECRET_KEY_FALLBACKS")

# The host names under which the service is reached. Commas between them.
ALLOWED_HOSTS = env.read_list("ALLOWED_HOSTS")

# Where clients reach the service ("https://rooms.example.com"): pictures' addresses begin so.
# Empty: with the host of the request, if that is allowed.
PUBLIC_URL = env.read_text("PUBLIC_URL").rstrip("/")

# Other origins whose pages may post to the admin ("https://admin.example.com").
CSRF_TRUSTED_ORIGINS = env.read_list("CSRF_TRUSTED_ORIGINS")

# How many proxies of ours stand before the service and add to X-Forwarded-For. Limits by network
# address count on it: too high, and callers can pretend to be anybody.
TRUSTED_PROXIES = env.read_int("TRUSTED_PROXIES", 0)

INSTALLED_APPS = [
    "roombook",
    "roombook.imports",
    "accounts",
    "centers",
    "payments",
    "reservations",
    "rest_framework",
    # The theme stands before what it dresses.
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "roombook.backoffice.site.BackofficeAdminConfig",
    "auditlog",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "roombook.middleware.RequestIdMiddleware",
    "roombook.middleware.RequestLogMiddleware",
    "roombook.middleware.KnownHostMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "roombook.middleware.ContentSecurityPolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    # Django's own, for pages only.
    "roombook.middleware.PageSessionMiddleware",
    "roombook.middleware.PageCommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "roombook.middleware.PageAuthenticationMiddleware",
    "roombook.middleware.PageMessageMiddleware",
    "roombook.middleware.AuditActorMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
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
# separated by commas, with ?target_session_attrs=read-write to find the one that takes writes.
DATABASE = env.read_database_url("DATABASE_URL", "sqlite:///db.sqlite3")

# A pooler in transaction mode (PgBouncer) stands before PostgreSQL: no session settings then.
PGBOUNCER = env.read_bool("PGBOUNCER", default=False)

# Seconds after which PostgreSQL gives up on one statement; 0 is never (for long migrations).
STATEMENT_TIMEOUT = env.read_int("STATEMENT_TIMEOUT", 30)

if DATABASE["ENGINE"].endswith("postgresql"):
    # Django's, which remembers prepared statements.
    DATABASE["ENGINE"] = "roombook.db.postgresql"
    # A connection costs more than most requests: keep it, and test it before its next use.
    DATABASE.setdefault("CONN_MAX_AGE", 60)
    DATABASE.setdefault("CONN_HEALTH_CHECKS", True)
    DATABASE["DISABLE_SERVER_SIDE_CURSORS"] = PGBOUNCER
    # A host that vanishes is noticed within seconds, not after the system's two hours.
    DATABASE["OPTIONS"] = {
        "connect_timeout": 2,
        "tcp_user_timeout": 5000,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
    } | DATABASE.get("OPTIONS", {})
    if not PGBOUNCER:
        DATABASE["OPTIONS"].setdefault(
            "options",
            f"-c lock_timeout=4s -c statement_timeout={STATEMENT_TIMEOUT}s"
            " -c idle_in_transaction_session_timeout=60s"
            # To compile a question takes longer than to answer ours.
            " -c jit=off",
        )
else:
    DATABASE["NAME"] = BASE_DIR / DATABASE["NAME"]
    # A transaction that means to write takes the lock at once: SQLite cannot let it wait later.
    DATABASE["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": (
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON"
        ),
    }

# No transaction around a whole request: none may be open while a payment gateway is asked.
DATABASE["ATOMIC_REQUESTS"] = False
DATABASES = {"default": DATABASE}
# The contract's ids are 32-bit.
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"

# --- Accounts -----------------------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["accounts.roles.CenterRoleBackend"]
PASSWORD_HASHERS = [
    "accounts.hashers.Argon2Hasher",
    # To read what an import from another Django brought along.
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ("email", "first_name", "last_name", "company_name")},
    },
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
    # Not longer than what sign-in takes.
    {"NAME": "accounts.validators.MaximumLengthValidator"},
]

# Days after which a token dies without use, and in any case.
TOKEN_IDLE_DAYS = env.read_int("TOKEN_IDLE_DAYS", 30, least=1)
TOKEN_MAX_DAYS = env.read_int("TOKEN_MAX_DAYS", 180, least=1)

# --- API ----------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.authentication.BodyTokenAuthentication"],
    "DEFAULT_RENDERER_CLASSES": [
        "roombook.api.renderers.JSONRenderer",
        "roombook.api.renderers.CSVRenderer",
    ],
    "DEFAULT_PARSER_CLASSES": [
        "roombook.api.parsers.JSONParser",
        "roombook.api.parsers.CSVParser",
    ],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "roombook.api.negotiation.ContentNegotiation",
    "EXCEPTION_HANDLER": "roombook.api.exceptions.exception_handler",
    "DEFAULT_PERMISSION_CLASSES": [],  # an operation itself says whether it needs a token
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_THROTTLE_CLASSES": [],  # limits are counted in the database, for all workers together
    "COERCE_DECIMAL_TO_STRING": False,
}

# The oldest app that may still call ("2.4"); older ones get 426. Empty: all may.
MINIMUM_APP_VERSION = env.read_text("MINIMUM_APP_VERSION")

# How many centers one search answers with at most.
SEARCH_MAX_RESULTS = env.read_int("SEARCH_MAX_RESULTS", 50, least=1)

# The API refuses a body above 256 KiB itself, with its envelope; this bound is for the admin's
# forms (pictures do not count) with many rows in them.
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_621_440
DATA_UPLOAD_MAX_NUMBER_FIELDS = 10_000

# --- Money and language -------------------------------------------------------------------------

# The currency of all prices (ISO 4217).
CURRENCY = env.read_text("CURRENCY", "USD")

# How money, hours and days are written for people.
LOCALE = env.read_text("LOCALE", "en_US")

LANGUAGE_CODE = "en-us"
USE_I18N = True
FORMAT_MODULE_PATH = "roombook.formats"
# Everything is stored in UTC; each center has its own time zone.
USE_TZ = True
TIME_ZONE = "UTC"

# --- Booking ------------------------------------------------------------------------------------

# Minutes that a customer's draft keeps its room, and hours that one made by staff does.
HOLD_MINUTES_CUSTOMER = env.read_int("HOLD_MINUTES_CUSTOMER", 15)
HOLD_HOURS_STAFF = env.read_int("HOLD_HOURS_STAFF", 24)

# How many drafts of one customer hold rooms at a time; one more lets the oldest go.
HELD_DRAFTS_MAX = env.read_int("HELD_DRAFTS_MAX", 10, least=1)

# Minutes that the room is kept for another card after one was declined.
HOLD_MINUTES_AFTER_DECLINE = env.read_int("HOLD_MINUTES_AFTER_DECLINE", 10)

# Bookings begin and end on this grid, last this long, and lie this far ahead at most.
BOOKING_GRID_MINUTES = env.read_int("BOOKING_GRID_MINUTES", 15, least=1)
BOOKING_MINIMUM_MINUTES = env.read_int("BOOKING_MINIMUM_MINUTES", 30, least=1)
BOOKING_MAXIMUM_DAYS = env.read_int("BOOKING_MAXIMUM_DAYS", 14, least=1)
BOOKING_WINDOW_DAYS = env.read_int("BOOKING_WINDOW_DAYS", 365, least=1)

# Hours in which a center must agree to a booking that awaits it.
PENDING_HOURS = env.read_int("PENDING_HOURS", 72, least=1)

# Cancelling is free until so many hours before the start, and so many minutes after booking.
CANCELLATION_NOTICE_HOURS = env.read_int("CANCELLATION_NOTICE_HOURS", 24)
CANCELLATION_GRACE_MINUTES = env.read_int("CANCELLATION_GRACE_MINUTES", 15)

# --- Payments -----------------------------------------------------------------------------------

# Who charges cards. "sandbox" charges nobody; with DEBUG off it must be asked for by name.
PAYMENT_GATEWAY = env.read_choice("PAYMENT_GATEWAY", "sandbox", ["sandbox", "stripe"])
PAYMENT_GATEWAY_IS_CHOSEN = env.is_set("PAYMENT_GATEWAY")

# Stripe's secret key: real money moves by sk_live_..., none by sk_test_... (rk_... work as well).
STRIPE_SECRET_KEY = env.read_text("STRIPE_SECRET_KEY")

# With a live key: the account's sk_test_..., by which TestMode judges cards without charging them.
STRIPE_TEST_SECRET_KEY = env.read_text("STRIPE_TEST_SECRET_KEY")

# The signing secret (whsec_...) of the webhook that Stripe sends to /webhooks/stripe.
STRIPE_WEBHOOK_SECRET = env.read_text("STRIPE_WEBHOOK_SECRET")

# Another address than Stripe's own, such as a stand-in on this machine; only with test keys.
STRIPE_API_BASE = env.read_text("STRIPE_API_BASE").rstrip("/")

# Seconds to wait for the gateway's answer, however many requests it takes.
GATEWAY_TIMEOUT = env.read_int("GATEWAY_TIMEOUT", 10, least=1)

# Seconds for which one request owns a payment; longer than the gateway can keep it waiting.
PAYMENT_LEASE_SECONDS = env.read_int("PAYMENT_LEASE_SECONDS", 60, least=1)

# --- Mail ---------------------------------------------------------------------------------------

# The server that takes our mail: smtp://host:25, smtp+tls://user:password@host:587 (STARTTLS) or
# smtp+ssl://user:password@host:465. consolemail:// prints it, filemail:///folder writes files.
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

# Whom mails come from; the name is what customers know the service as.
DEFAULT_FROM_EMAIL = env.read_text("DEFAULT_FROM_EMAIL", "roombook <roombook@localhost>")

# Where customers can write to; every mail names it, and answers go there. Empty: none.
SUPPORT_EMAIL = env.read_text("SUPPORT_EMAIL")

# --- Files --------------------------------------------------------------------------------------

STATIC_URL = "/static/"
# Where `manage.py collectstatic` puts the admin's own files.
STATIC_ROOT = BASE_DIR / env.read_text("STATIC_ROOT", "staticfiles")
WHITENOISE_USE_FINDERS = DEBUG
WHITENOISE_AUTOREFRESH = DEBUG

# Uploaded pictures: the folder, and the address under which the web server shows it.
MEDIA_ROOT = BASE_DIR / env.read_text("MEDIA_ROOT", "media")
MEDIA_URL = env.read_text("MEDIA_URL", "/media/")

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

# --- Security -----------------------------------------------------------------------------------

# Send browsers from http:// to https://. Off only where something before us does it.
SECURE_SSL_REDIRECT = env.read_bool("SECURE_SSL_REDIRECT", default=not DEBUG)
# Health checks come from inside, without TLS.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]

# Seconds for which browsers refuse to reach us without HTTPS.
SECURE_HSTS_SECONDS = env.read_int("SECURE_HSTS_SECONDS", 0 if DEBUG else 31_536_000)
SECURE_HSTS_INCLUDE_SUBDOMAINS = True

if TRUSTED_PROXIES:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

SESSION_COOKIE_SECURE = not DEBUG
SESSION_COOKIE_AGE = 60 * 60 * 12  # a working day: the admin is for staff at shared desks
CSRF_COOKIE_SECURE = not DEBUG
CSRF_COOKIE_HTTPONLY = True
X_FRAME_OPTIONS = "DENY"
# Reports of errors hold no local variables: among them may be a card or a token.
DEFAULT_EXCEPTION_REPORTER_FILTER = "roombook.logging.PrivateExceptionReporterFilter"

SILENCED_SYSTEM_CHECKS = [
    "security.W021",  # HSTS preload binds a whole domain for years: its owner's decision
]

# --- Back office --------------------------------------------------------------------------------

LOGIN_REDIRECT_URL = "admin:index"

UNFOLD = {
    "SITE_TITLE": "roombook",
    "SITE_HEADER": "roombook",
    "SITE_SYMBOL": "meeting_room",
    "SITE_URL": None,
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": "roombook.backoffice.site.get_icon_url"}
    ],
    "SHOW_VIEW_ON_SITE": False,
    "BORDER_RADIUS": "6px",
    "LOGIN": {"form": "accounts.forms.SignInForm"},
    "STYLES": ["roombook.backoffice.site.get_stylesheet_url"],
    "SCRIPTS": ["roombook.backoffice.site.get_script_url"],
    "SIDEBAR": {"navigation": "roombook.backoffice.navigation.build_navigation"},
    "DASHBOARD_CALLBACK": "reservations.admin.dashboard.dashboard.add_dashboard_to_context",
    "COLORS": {
        "primary": {
            "50": "oklch(98.4% .014 180.72)",
            "100": "oklch(95.3% .051 180.801)",
            "200": "oklch(91% .096 180.426)",
            "300": "oklch(85.5% .138 181.071)",
            "400": "oklch(77.7% .152 181.912)",
            "500": "oklch(70.4% .14 182.503)",
            "600": "oklch(51.1% .096 186.391)",
            "700": "oklch(43.7% .078 188.216)",
            "800": "oklch(38.6% .063 188.416)",
            "900": "oklch(33% .055 189)",
            "950": "oklch(27.7% .046 192.524)",
        },
    },
}

# --- Logging ------------------------------------------------------------------------------------

# DEBUG, INFO, WARNING or ERROR.
LOG_LEVEL = env.read_choice("LOG_LEVEL", "INFO", ["DEBUG", "INFO", "WARNING", "ERROR"])

# One line a request is written by roombook.middleware.RequestLogMiddleware. Both formatters mask
# card numbers; a handler without one of them must not be added.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"request_id": {"()": "roombook.logging.RequestIdFilter"}},
    "formatters": {
        "json": {"()": "roombook.logging.JsonLogFormatter"},
        "plain": {"()": "roombook.logging.PlainLogFormatter"},
    },
    "handlers": {
        "stdout": {
            "class": "logging.StreamHandler",
            "stream": "ext://sys.stdout",
            "filters": ["request_id"],
            "formatter": "plain" if DEBUG else "json",
        },
    },
    "root": {"handlers": ["stdout"], "level": LOG_LEVEL},
    "loggers": {
        # Django's own handlers (console, mail) are taken off: everything goes one road.
        "django": {"handlers": [], "level": LOG_LEVEL, "propagate": True},
        "django.server": {"handlers": [], "level": "ERROR", "propagate": True},
        # Every refused request would be a warning; it already has its line.
        "django.request": {"level": "ERROR"},
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        # Statements hold customers' data.
        "django.db.backends": {"level": "INFO"},
        # Below this it tells every request, cards included.
        "stripe": {"level": "WARNING"},
    },
}
