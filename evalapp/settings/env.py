"""Reads and validates the environment. Every setting an operator can set is declared here once;
docs/reference/settings.md is generated from this table and a test holds the two together."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

MIN_KEY_LENGTH = 50


@dataclass(frozen=True)
class Setting:
    """One environment variable: its name, default as shown to people, and what it does. A `secret` may stand in a file,
    which NAME_FILE then names."""

    name: str
    default: str
    help: str
    secret: bool = False


SETTINGS = (
    Setting(
        "EVALAPP_DATA",
        "./data",
        "Folder for everything the installation keeps: database, uploads, artefacts.",
    ),
    Setting(
        "DATABASE_URL",
        "SQLite in the data folder",
        "postgres://user:password@host:port/name or sqlite:///path.",
        secret=True,
    ),
    Setting("DATABASE_PASSWORD", "none", "Password of that user, where the address carries none.", secret=True),
    Setting("DATABASE_TIMEOUT", "20", "How long a page waits for PostgreSQL, in seconds; runs wait longer."),
    Setting(
        "REDIS_URL",
        "a Redis started by `manage.py up`",
        "redis://, rediss:// or unix:// address of the queue.",
    ),
    Setting("REDIS_PASSWORD", "none", "Password of the queue, where the address carries none.", secret=True),
    Setting("ELASTICSEARCH_URL", "none", "http(s) address of an Elasticsearch 8 for retrieval at scale."),
    Setting("ELASTICSEARCH_USERNAME", "none", "User name for it, where the address carries none."),
    Setting("ELASTICSEARCH_PASSWORD", "none", "Password of that user.", secret=True),
    Setting(
        "ELASTICSEARCH_API_KEY", "none", "API key (its encoded form) in place of user name and password.", secret=True
    ),
    Setting("ELASTICSEARCH_CA_CERTS", "the system's", "File with the certificate authority of an https address."),
    Setting("ELASTICSEARCH_SHARDS", "1", "Shards of a new index; as many as cores may search at once."),
    Setting("ELASTICSEARCH_TIMEOUT", "2", "How long a page waits for candidates, in seconds."),
    Setting(
        "SECRET_KEY",
        "generated once in the data folder",
        "At least 50 characters; signs sessions and links.",
        secret=True,
    ),
    Setting("DEBUG", "0", "1 shows error details; refused when ALLOWED_HOSTS names a public host."),
    Setting("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]", "Host names, separated by commas; no wildcards."),
    Setting("CSRF_TRUSTED_ORIGINS", "none", "https://... origins of a reverse proxy, separated by commas."),
    Setting(
        "SECURE_PROXY",
        "0",
        "1 when a TLS reverse proxy stands in front (secure cookies, HSTS, X-Forwarded-Proto).",
    ),
    Setting("HSTS_SECONDS", "31536000", "With SECURE_PROXY=1: how long browsers use TLS alone for this host."),
    Setting("HSTS_SUBDOMAINS", "1", "0 when a host below this one is reached without TLS."),
    Setting("HSTS_PRELOAD", "1 with subdomains and a year", "0 to stay out of the lists that browsers bring along."),
    Setting("PORT", "8000", "Port of the web process."),
    Setting("WEB_WORKERS", "number of cores, 2 to 8", "gunicorn worker processes."),
    Setting(
        "EMAIL_URL",
        "consolemail://",
        "smtp://user:password@host:port for password resets; console by default.",
        secret=True,
    ),
    Setting("DEFAULT_FROM_EMAIL", "evalapp@localhost", "Sender of mails."),
    Setting("MAX_UPLOAD_MB", "2048", "Largest upload in megabytes, answered before the body is read."),
    Setting("MIN_FREE_MB", "200", "Megabytes of disk that stay free: with less, uploads are refused."),
    Setting("MAX_ROW_KB", "1024", "Longest row of an upload in kilobytes."),
    Setting("MAX_ROWS", "20000000", "Most rows of one uploaded file."),
    Setting("ENCODERS", "none", "Names or folders of further encoders people may choose, separated by commas."),
    Setting("LIVE_TIMEOUT_MS", "2000", "How long an online score is waited for, in milliseconds."),
    Setting("LIVE_MODELS", "4", "How many evaluators the worker for online scores keeps in memory."),
    Setting(
        "METRICS_TOKEN",
        "none",
        "Lets Prometheus read /metrics from elsewhere; without it, this machine alone.",
        secret=True,
    ),
    Setting("LOG_FORMAT", "plain", "plain or json (one object a line, with the numbers of request and run)."),
    Setting("LOG_LEVEL", "INFO", "DEBUG, INFO, WARNING or ERROR."),
)
_NAMES = {s.name for s in SETTINGS}
_SECRETS = {s.name for s in SETTINGS if s.secret}


def text(name: str, default: str = "") -> str:
    """The variable's value without surrounding blanks; of a secret also the content of the file NAME_FILE names."""
    assert name in _NAMES, name
    value = os.environ.get(name, "").strip()
    if name in _SECRETS:
        value = _of_file(name, value)
    return value or default


def _of_file(name: str, value: str) -> str:
    path = os.environ.get(f"{name}_FILE", "").strip()
    if not path:
        return value
    if value:
        raise ImproperlyConfigured(f"Both {name} and {name}_FILE are set. Keep one of them.")
    try:
        found = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ImproperlyConfigured(f"{name}_FILE={path} cannot be read: {why}.") from error
    if not found or "\n" in found:
        raise ImproperlyConfigured(f"{name}_FILE={path} must hold one line with the value of {name}.")
    return found


def flag(name: str, default: str = "0") -> bool:
    value = text(name, default).lower()
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name}={value!r} is neither 1 nor 0. Set {name}=1 or {name}=0.")


def number(name: str, default: int, low: int, high: int) -> int:
    value = text(name, str(default))
    if not value.isdecimal() or not low <= int(value) <= high:
        raise ImproperlyConfigured(f"{name}={value!r} must be a whole number from {low} to {high}.")
    return int(value)


def names(name: str, default: str = "") -> list[str]:
    return [part.strip() for part in text(name, default).split(",") if part.strip()]


def data_folder() -> Path:
    folder = Path(text("EVALAPP_DATA", "data")).expanduser().resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(
            f"EVALAPP_DATA={folder} cannot be created ({error.strerror}). Name a folder this user can write to."
        ) from error
    if not os.access(folder, os.W_OK):
        raise ImproperlyConfigured(f"EVALAPP_DATA={folder} is not writable. Name a folder this user can write to.")
    return folder


def secret_key(folder: Path) -> str:
    """SECRET_KEY, or one generated at first start and kept (mode 600) in the data folder."""
    key = text("SECRET_KEY")
    if key:
        if len(key) < MIN_KEY_LENGTH or len(set(key)) < 5 or key.startswith("django-insecure-"):
            raise ImproperlyConfigured(
                f"SECRET_KEY is too weak. Use at least {MIN_KEY_LENGTH} random characters, for example from: "
                "python3 -c 'import secrets; print(secrets.token_urlsafe(64))'"
            )
        return key
    path = folder / "secret_key"
    if not path.exists():
        _make_key(path)
    key = path.read_bytes().decode("ascii", "replace").strip()
    if len(key) < MIN_KEY_LENGTH or len(set(key)) < 5 or not key.isprintable():
        raise ImproperlyConfigured(
            f"{path} is {'damaged' if key else 'empty'}. Put the one of a backup back, or set SECRET_KEY. Without "
            "either, delete the file: the next start makes another key, and everybody must sign in again."
        )
    return key


def _make_key(path: Path) -> None:
    """Written whole under another name first: the file is there with its key or not at all, and of processes that start
    together the first one makes it."""
    draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(64))
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


#: Passwords of servers that stand in examples everywhere.
KNOWN_PASSWORDS = frozenset({"password", "postgres", "changeme", "change-me", "secret", "admin", "evalapp", "redis"})


def address(name: str, schemes: set[str]) -> str:
    value = text(name)
    try:
        parts = urlsplit(value)
        if value != "sqlite://:memory:":  # which has none
            parts.port  # noqa: B018 - it is read only now
    except ValueError:  # whose words may hold the password
        raise ImproperlyConfigured(
            f"{name} is no address. In user name and password write what is not a letter or digit as %XX (@ is %40)."
        ) from None
    if value and parts.scheme not in schemes:
        raise ImproperlyConfigured(f"{name} must start with one of: {', '.join(sorted(schemes))} (then ://).")
    if parts.hostname not in (None, "127.0.0.1", "localhost", "::1") and parts.password in KNOWN_PASSWORDS:
        raise ImproperlyConfigured(
            f"{name} has a password that everybody knows. Give the server another one, for example from: "
            "python3 -c 'import secrets; print(secrets.token_urlsafe(24))'"
        )
    return value


def password(name: str) -> str:
    """The password of a server, apart from its address."""
    value = text(name)
    if value in KNOWN_PASSWORDS:
        raise ImproperlyConfigured(
            f"{name} is a password that everybody knows. Give the server another one, for example from: "
            "python3 -c 'import secrets; print(secrets.token_urlsafe(24))'"
        )
    return value


def hosts(debug: bool) -> list[str]:
    value = names("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
    if any("*" in host or host.startswith(".") for host in value):
        raise ImproperlyConfigured("ALLOWED_HOSTS must name hosts, without wildcards: evalapp.example.org,127.0.0.1")
    if debug and set(value) - {"127.0.0.1", "localhost", "[::1]", "testserver"}:
        raise ImproperlyConfigured("DEBUG=1 is refused when ALLOWED_HOSTS names a public host. Set DEBUG=0.")
    return value


def origins() -> list[str]:
    """CSRF_TRUSTED_ORIGINS: what is named here may send forms, so it is named exactly and reached by TLS."""
    value = names("CSRF_TRUSTED_ORIGINS")
    for origin in value:
        parts = urlsplit(origin)
        local = parts.hostname in {"127.0.0.1", "localhost", "::1"}
        if "*" in origin or parts.scheme not in ("https", "http") or not parts.hostname or parts.path not in ("", "/"):
            raise ImproperlyConfigured(
                f"CSRF_TRUSTED_ORIGINS={origin!r} must be an origin without wildcard or path: "
                "https://evalapp.example.org"
            )
        if parts.scheme == "http" and not local:
            raise ImproperlyConfigured(
                f"CSRF_TRUSTED_ORIGINS={origin!r} is not reached by TLS. Put a TLS proxy in front and write https://."
            )
    return value


def hsts(behind_tls: bool) -> tuple[int, bool, bool]:
    """Seconds, subdomains and preload of Strict-Transport-Security; nothing without TLS."""
    seconds, subdomains = number("HSTS_SECONDS", 31_536_000, 0, 315_360_000), flag("HSTS_SUBDOMAINS", "1")
    may_preload = subdomains and seconds >= 31_536_000
    preload = flag("HSTS_PRELOAD", "1" if may_preload else "0")
    if preload and not may_preload:
        raise ImproperlyConfigured("HSTS_PRELOAD=1 needs HSTS_SUBDOMAINS=1 and HSTS_SECONDS=31536000 (a year) or more.")
    return (seconds, subdomains, preload) if behind_tls else (0, False, False)


def token(name: str) -> str:
    """A secret that opens a door by itself, hence a long one; empty: the door is closed."""
    value = text(name)
    if value and len(value) < 24:
        raise ImproperlyConfigured(
            f"{name} is too short. Use at least 24 random characters, for example from: "
            "python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    return value
