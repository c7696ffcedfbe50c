"""Django settings for all installations; `env` reads what differs between them from environment variables."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from evalapp import __version__, languages
from evalapp.layout import FILES

from . import env, judge_endpoints, oidc_providers

VERSION = __version__
BASE_DIR = FILES
DATA_DIR = env.data_folder()
UPLOADS_DIR = DATA_DIR / "uploads"
EXPORTS_DIR = DATA_DIR / "exports"
ARTEFACTS_DIR = DATA_DIR / "artefacts"
CORPORA_DIR = DATA_DIR / "corpora"
STAGING_DIR = DATA_DIR / "staging"

DEBUG = env.flag("DEBUG")
SECRET_KEY = env.secret_key(DATA_DIR)
ALLOWED_HOSTS = env.hosts(DEBUG)
CSRF_TRUSTED_ORIGINS = env.origins()

INSTALLED_APPS = [
    "evalapp",  # first, so that its command `changepassword` replaces Django's
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.forms",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "axes",
    "evalapp.accounts",
    "evalapp.common",
    "evalapp.events",
    "annotation",
    "retrieval",
    "scoring",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "evalapp.common.logs.RequestNumber",
    "csp.middleware.CSPMiddleware",
    "evalapp.common.middleware.Headers",
    "evalapp.common.middleware.Sessionless",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "evalapp.common.middleware.Language",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",  # except for views with login_not_required
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "evalapp.common.middleware.SideFigures",
    "evalapp.common.middleware.ErrorPages",
    "evalapp.common.bodies.BodyLimit",
    "axes.middleware.AxesMiddleware",
    "annotation.views.languages.CampaignLanguage",
]

ROOT_URLCONF = "evalapp.urls"
WSGI_APPLICATION = "evalapp.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "evalapp.common.context.site",
            ],
            "builtins": ["django.templatetags.i18n", "evalapp.common.templatetags.evalapp"],
        },
    }
]

# ---- database -------------------------------------------------------------------------------------------

_SQLITE_OPTIONS = {
    # IMMEDIATE: a transaction takes the write lock when it begins, so it waits instead of failing later.
    "transaction_mode": "IMMEDIATE",
    "timeout": 30,
    "init_command": (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA mmap_size=134217728;"
        "PRAGMA cache_size=-16000; PRAGMA temp_store=MEMORY"
    ),
}


DATABASE_POOLER = env.flag("DATABASE_POOLER")


def database() -> dict[str, Any]:
    """Return Django's configuration of the database in DATABASE_URL."""
    url = env.address("DATABASE_URL", {"postgres", "postgresql", "sqlite"})
    config: dict[str, Any] = dict(dj_database_url.parse(url or f"sqlite:///{quote(str(DATA_DIR / 'evalapp.sqlite3'))}"))
    password = env.password("DATABASE_PASSWORD")
    if "sqlite" in config["ENGINE"]:
        if password:
            raise ImproperlyConfigured("DATABASE_PASSWORD is set, but DATABASE_URL names no PostgreSQL server.")
        config["OPTIONS"] = dict(_SQLITE_OPTIONS)
    else:
        if not config.get("NAME") or not config.get("HOST"):
            raise ImproperlyConfigured("DATABASE_URL needs host and name: postgres://user:password@host:5432/evalapp")
        config["PASSWORD"] = password or config.get("PASSWORD", "")
        config["CONN_MAX_AGE"] = 600
        config["CONN_HEALTH_CHECKS"] = True
        options = config.setdefault("OPTIONS", {})
        if DATABASE_POOLER:
            # Consecutive transactions may use different server connections.
            config["DISABLE_SERVER_SIDE_CURSORS"] = True
        else:
            # Only judging prepares statements. A generic plan is made once per connection instead of five times, which
            # halves the database time of the first assignments.
            options.setdefault("options", "-c plan_cache_mode=force_generic_plan")
        # If the server is unreachable, pages report it soon, and broken connections are noticed.
        options.setdefault("connect_timeout", 2)
        options.setdefault("tcp_user_timeout", 10_000)
    return config


DATABASES = {"default": database()}
DATABASE_TIMEOUT = env.number("DATABASE_TIMEOUT", 20, 2, 600)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# ---- queue ----------------------------------------------------------------------------------------------


def redis_url() -> str:
    """Return REDIS_URL with REDIS_PASSWORD, or the socket of the Redis started by `evalapp up`."""
    url = env.address("REDIS_URL", {"redis", "rediss", "unix"}) or f"unix://{quote(str(DATA_DIR / 'redis.sock'))}"
    password = env.password("REDIS_PASSWORD")
    if not password:
        return url
    parts = urlsplit(url)
    if parts.scheme == "unix" or parts.password:
        raise ImproperlyConfigured("REDIS_PASSWORD needs a REDIS_URL without password: redis://host:6379/0")
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username or ''}:{quote(password, safe='')}@{place}"))


REDIS_URL = redis_url()
ELASTICSEARCH_URL = env.address("ELASTICSEARCH_URL", {"http", "https"})
ELASTICSEARCH_USERNAME = env.text("ELASTICSEARCH_USERNAME")
ELASTICSEARCH_PASSWORD = env.text("ELASTICSEARCH_PASSWORD")
ELASTICSEARCH_API_KEY = env.text("ELASTICSEARCH_API_KEY")
ELASTICSEARCH_CA_CERTS = env.text("ELASTICSEARCH_CA_CERTS")
ELASTICSEARCH_SHARDS = env.number("ELASTICSEARCH_SHARDS", 1, 1, 1024)
ELASTICSEARCH_TIMEOUT = env.number("ELASTICSEARCH_TIMEOUT", 2, 1, 600)

# ---- people ---------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "accounts:login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "home"
OIDC_PROVIDERS = oidc_providers.read_providers()
PASSWORD_SIGN_IN = oidc_providers.read_password_sign_in(OIDC_PROVIDERS)
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "evalapp.accounts.backends.PasswordBackend",
]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_TEMPLATE = "accounts/locked.html"
AXES_VERBOSE = False
AXES_CLIENT_IP_CALLABLE = "evalapp.accounts.limits.client_ip"

# ---- security -------------------------------------------------------------------------------------------

_BEHIND_TLS = env.flag("SECURE_PROXY")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _BEHIND_TLS
CSRF_FAILURE_VIEW = "evalapp.common.views.csrf_failure"
SESSION_COOKIE_HTTPONLY = True
SESSION_ENGINE = "evalapp.accounts.sessions"
SESSION_COOKIE_AGE = 60 * 60 * 24 * 14
#: The path before all addresses; cookies are not sent to other sites of the same host.
SUB_PATH = env.sub_path()
if SUB_PATH:
    FORCE_SCRIPT_NAME = SUB_PATH
    SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = LANGUAGE_COOKIE_PATH = f"{SUB_PATH}/"
SITE_URL = env.site_url(SUB_PATH, ALLOWED_HOSTS, _BEHIND_TLS)
SECURE_SSL_REDIRECT = _BEHIND_TLS
SECURE_HSTS_SECONDS, SECURE_HSTS_INCLUDE_SUBDOMAINS, SECURE_HSTS_PRELOAD = env.hsts(_BEHIND_TLS)
SECURE_REDIRECT_EXEMPT = [rf"^{path}" for path in (f"{SUB_PATH}/health/"[1:], f"{SUB_PATH}/metrics$"[1:])]
METRICS_TOKEN = env.token("METRICS_TOKEN")
if _BEHIND_TLS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

# ---- backups --------------------------------------------------------------------------------------------

BACKUP_FOLDER = env.backup_folder()
BACKUP_TIME = env.time_of_day("BACKUP_TIME", "03:30")
BACKUP_KEEP = env.number("BACKUP_KEEP", 7, 1, 10_000)

# ---- webhooks -------------------------------------------------------------------------------------------

#: Hosts that webhooks may name, with a port if it is not that of the scheme, and internal networks they may be in.
WEBHOOK_HOSTS, WEBHOOK_NETWORKS = env.webhook_hosts()

# ---- uploads --------------------------------------------------------------------------------------------

MAX_UPLOAD_BYTES = env.number("MAX_UPLOAD_MB", 2048, 1, 1_000_000) * 1_000_000
MIN_FREE_BYTES = env.number("MIN_FREE_MB", 200, 0, 1_000_000) * 1_000_000
#: Paths of uploads in pages and API.
LARGE_BODY_PATHS = [
    r"/projects/[^/]+/uploads/",
    r"/api/v1/projects/[^/]+/uploads/",
    r"/projects/[^/]+/evaluators/upload/",
    r"/api/v1/projects/[^/]+/evaluators/trained/",
    r"/projects/[^/]+/corpora/(new/|[^/]+/add/)",
    r"/api/v1/projects/[^/]+/corpora/([^/]+/parts/)?",
]
#: Paths where a form or JSON document may be longer than `evalapp.ops.SMALL_BODY`, up to DATA_UPLOAD_MAX_MEMORY_SIZE:
#: plans, guidelines, notes, lists of items and raters (which need write permission), texts to score, and texts written
#: by annotators (10,000 characters can take 120 KB in a form).
LONG_FORM_PATHS = [
    r"(/api/v1)?/projects/[^/]+/.*",
    r"/api/v1/projects/",
    r"/api/v1/(campaigns|writing|recruitments)/[0-9]+/",
    r"/api/v1/campaigns/[0-9]+/recruitments/",
    r"/api/v1/evaluators/[^/]+/[a-z]+/",
    r"/api/v1/(writing-tasks|confirmations)/.+",
    r"/my/writing/.+",
]
MAX_ROW_BYTES = env.number("MAX_ROW_KB", 1024, 1, 1_000_000) * 1_000
MAX_ROWS = env.number("MAX_ROWS", 20_000_000, 1, 10_000_000_000)
FILE_UPLOAD_HANDLERS = ["evalapp.common.receiving.UploadHandler"]
DATA_UPLOAD_MAX_MEMORY_SIZE = 5_000_000
#: An evaluator with 20 folds has up to 18 files per fold and one of its own; a test compares this with the artefacts.
DATA_UPLOAD_MAX_NUMBER_FILES = 20 * 18 + 1
ENCODERS = env.names("ENCODERS")
JUDGE_ENDPOINTS = judge_endpoints.read_endpoints()
LIVE_TIMEOUT_MS = env.number("LIVE_TIMEOUT_MS", 2000, 100, 600_000)
LIVE_MODELS = env.number("LIVE_MODELS", 4, 1, 1000)

# ---- pages ----------------------------------------------------------------------------------------------

STATIC_URL = f"{SUB_PATH}/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
WHITENOISE_KEEP_ONLY_HASHED_FILES = True
FORM_RENDERER = "evalapp.common.forms.FormRenderer"
LANGUAGE_CODE = "en-gb"
LANGUAGES = list(languages.LANGUAGES.items())
LOCALE_PATHS = [Path(languages.__file__).parent / "locale"]
#: Decimal points in every language, as in the figures, tables and exports beside them.
FORMAT_MODULE_PATH = ["evalapp.settings.formats"]
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

globals().update(env.mail())
EMAIL_TIMEOUT = 30  # seconds; mails are sent outside of requests
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", "evalapp@localhost")

# ---- API ------------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "evalapp.accounts.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["evalapp.common.api.parsers.JSONParser"],
    "DEFAULT_PAGINATION_CLASS": "evalapp.common.pagination.KeysetPagination",
    "PAGE_SIZE": 50,
    "EXCEPTION_HANDLER": "evalapp.common.problems.exception_handler",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_VERSIONING_CLASS": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "evalapp",
    "DESCRIPTION": "People and learned evaluators judge generated text, in one loop.",
    "VERSION": VERSION,
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "evalapp.common.api.run_bodies.add_run_bodies",
        "evalapp.common.api.examples.add_examples",
        "evalapp.common.api.problem_responses.add_problems",
        "evalapp.common.api.tags.add_tags",
    ],
    "ENUM_NAME_OVERRIDES": {
        "InvitationStateEnum": "evalapp.accounts.models.Invitation.State",
        "MailStateEnum": "evalapp.common.models.Mail.State",
        "RunStateEnum": "evalapp.common.models.Run.State",
        "UploadStateEnum": "annotation.models.Upload.State",
        "CampaignStateEnum": "annotation.models.Campaign.State",
        "CampaignKindEnum": "annotation.models.Campaign.Kind",
        "AssignmentStateEnum": "annotation.models.Assignment.State",
        "SystemKindEnum": "annotation.models.System.Kind",
        "WritingKindEnum": "annotation.models.WritingCampaign.Kind",
        "CorpusStateEnum": "retrieval.models.Corpus.State",
        "CorpusPartKindEnum": "retrieval.models.CorpusPart.Kind",
        "CorpusPartStateEnum": "retrieval.models.CorpusPart.State",
        "EvaluatorStateEnum": "scoring.models.Evaluator.State",
        "DeliveryStateEnum": "evalapp.events.models.Delivery.State",
        "ReportStateEnum": "scoring.models.SharedReport.State",
    },
}

# ---- log ------------------------------------------------------------------------------------------------

LOG_LEVEL = env.text("LOG_LEVEL", "INFO").upper()
if LOG_LEVEL not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
    raise ImproperlyConfigured(f"LOG_LEVEL={LOG_LEVEL!r} must be DEBUG, INFO, WARNING or ERROR.")
LOG_FORMAT = env.text("LOG_FORMAT", "plain").lower()
if LOG_FORMAT not in {"plain", "json"}:
    raise ImproperlyConfigured(f"LOG_FORMAT={LOG_FORMAT!r} must be plain or json.")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {
            "()": "evalapp.common.logs.PlainFormatter",
            "format": "{levelname} {name}: {message}",
            "style": "{",
        },
        "json": {"()": "evalapp.common.logs.JsonFormatter"},
    },
    "filters": {"host": {"()": "evalapp.common.logs.HostFilter"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        "axes": {"level": "WARNING"},
        "django.security.DisallowedHost": {"filters": ["host"]},
        "fontTools": {"level": "WARNING"},
        "httpcore": {"level": "WARNING"},
        "elastic_transport": {"level": "WARNING"},  # INFO has a line per search
        # INFO has a line for each periodic task, every ten seconds.
        "celery.beat": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
    },
}

# Encoders come from packages and folders; the libraries must never download from a hub.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
