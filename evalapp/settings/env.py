"""Read and validate environment variables. Every setting of an operator is declared here;
`docs/reference/settings.md` is generated from this table, and a test compares the two."""

import ipaddress
import json
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlsplit

from django.core.exceptions import ImproperlyConfigured

MIN_KEY_LENGTH = 50


@dataclass(frozen=True)
class Setting:
    """An environment variable, its default as documented, and its help text. A `secret` can also be read from the file
    named by `NAME_FILE`."""

    name: str
    default: str
    help: str
    secret: bool = False


SETTINGS = (
    Setting(
        "EVALAPP_DATA",
        "./data",
        "Folder for all data of the installation: database, uploads, artefacts.",
    ),
    Setting(
        "DATABASE_URL",
        "SQLite in the data folder",
        "postgres://user:password@host:port/name or sqlite:///path.",
        secret=True,
    ),
    Setting("DATABASE_PASSWORD", "none", "Password of that user, unless it is part of the address.", secret=True),
    Setting("DATABASE_TIMEOUT", "20", "Seconds that a page waits for PostgreSQL; background runs wait longer."),
    Setting(
        "DATABASE_POOLER",
        "0",
        "1 behind a pooler in transaction mode, such as PgBouncer: no prepared statements, no server-side cursors.",
    ),
    Setting(
        "REDIS_URL",
        "a Redis started by `evalapp up`",
        "redis://, rediss:// or unix:// address of the queue.",
    ),
    Setting("REDIS_PASSWORD", "none", "Password of the queue, unless it is part of the address.", secret=True),
    Setting("ELASTICSEARCH_URL", "none", "http(s) address of an Elasticsearch 8 server for large corpora."),
    Setting("ELASTICSEARCH_USERNAME", "none", "User name for Elasticsearch, unless it is part of the address."),
    Setting("ELASTICSEARCH_PASSWORD", "none", "Password of that user.", secret=True),
    Setting("ELASTICSEARCH_API_KEY", "none", "API key (encoded form) instead of user name and password.", secret=True),
    Setting("ELASTICSEARCH_CA_CERTS", "the system's", "File with the certificate authority for an https address."),
    Setting("ELASTICSEARCH_SHARDS", "1", "Number of shards of a new index; each can use one core during a search."),
    Setting("ELASTICSEARCH_TIMEOUT", "2", "Seconds that a page waits for candidates."),
    Setting(
        "SECRET_KEY",
        "generated once in the data folder",
        "At least 50 characters; signs sessions and links.",
        secret=True,
    ),
    Setting("DEBUG", "0", "1 shows error details; not allowed when ALLOWED_HOSTS names a public host."),
    Setting("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]", "Host names, separated by commas; no wildcards."),
    Setting("CSRF_TRUSTED_ORIGINS", "none", "https://... origins of a reverse proxy, separated by commas."),
    Setting(
        "SECURE_PROXY",
        "0",
        "1 if the site is behind a TLS reverse proxy (secure cookies, HSTS, X-Forwarded-Proto).",
    ),
    Setting(
        "HSTS_SECONDS", "31536000", "With SECURE_PROXY=1: seconds during which browsers use only TLS for this host."
    ),
    Setting("HSTS_SUBDOMAINS", "1", "0 if a subdomain is reached without TLS."),
    Setting("HSTS_PRELOAD", "1 with subdomains and a year", "0 to stay out of the preload lists of browsers."),
    Setting("SUB_PATH", "none", "Path of the site on its host if it is not the root, for example /evalapp."),
    Setting("PORT", "8000", "Port of the web process."),
    Setting("WEB_WORKERS", "number of cores, 2 to 8", "gunicorn worker processes."),
    Setting(
        "EMAIL_URL",
        "consolemail://",
        "smtp://user:password@host:port of the server that sends mails; by default, mails are written to the log.",
        secret=True,
    ),
    Setting(
        "SITE_URL",
        "https:// and the first public name of ALLOWED_HOSTS, else http://127.0.0.1:PORT",
        "Address of the site as people open it, for links in mails.",
    ),
    Setting("DEFAULT_FROM_EMAIL", "evalapp@localhost", "Sender of mails."),
    Setting(
        "OIDC_PROVIDERS",
        "none",
        "Institutions whose accounts people sign in with, by OpenID Connect: JSON, or the path of a JSON file; "
        "see docs/operations/sign-in-and-mail.md.",
    ),
    Setting("PASSWORD_SIGN_IN", "1", "0 if people sign in with OIDC_PROVIDERS only."),
    Setting("BACKUP_FOLDER", "none", "Folder that gets a backup of the installation every day."),
    Setting("BACKUP_TIME", "03:30", "Time of that backup, UTC."),
    Setting("BACKUP_KEEP", "7", "Number of daily backups to keep; older ones are removed."),
    Setting(
        "WEBHOOK_HOSTS",
        "none: webhooks are not sent",
        "Hosts that webhooks may be sent to, separated by commas: hooks.example.org, hooks.example.org:8443. An "
        "internal host also needs its address or network: receiver.lan:8080,10.1.2.0/24.",
    ),
    Setting("MAX_UPLOAD_MB", "2048", "Largest upload in megabytes; larger ones are refused before the body is read."),
    Setting("MIN_FREE_MB", "200", "Uploads are refused if fewer megabytes of disk are free."),
    Setting("MAX_ROW_KB", "1024", "Longest row of an upload in kilobytes."),
    Setting("MAX_ROWS", "20000000", "Maximum rows of an uploaded file."),
    Setting("ENCODERS", "none", "Names or folders of additional encoders that users may choose, separated by commas."),
    Setting("LIVE_TIMEOUT_MS", "2000", "Milliseconds to wait for an online score."),
    Setting("LIVE_MODELS", "4", "Number of evaluators that the worker for online scores keeps in memory."),
    Setting(
        "JUDGE_ENDPOINTS",
        "none",
        "Servers and folders of language models that may judge texts: JSON, or the path of a JSON file; "
        "see docs/how-to/judge-with-a-language-model.md.",
    ),
    Setting(
        "METRICS_TOKEN",
        "none",
        "Lets Prometheus read /metrics from other machines; without it, only this machine can.",
        secret=True,
    ),
    Setting("LOG_FORMAT", "plain", "plain or json (one object per line, with request and run id)."),
    Setting("LOG_LEVEL", "INFO", "DEBUG, INFO, WARNING or ERROR."),
)
_NAMES = {s.name for s in SETTINGS}
_SECRETS = {s.name for s in SETTINGS if s.secret}


def text(name: str, default: str = "") -> str:
    """Return the stripped value of a variable; secrets can also come from the file named by `NAME_FILE`."""
    assert name in _NAMES, name
    value = os.environ.get(name, "").strip()
    if name in _SECRETS:
        value = _read_secret_file(name, value)
    return value or default


def _read_secret_file(name: str, value: str) -> str:
    path = os.environ.get(f"{name}_FILE", "").strip()
    if not path:
        return value
    if value:
        raise ImproperlyConfigured(f"Both {name} and {name}_FILE are set. Keep only one.")
    try:
        content = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ImproperlyConfigured(f"{name}_FILE={path} cannot be read: {why}.") from error
    if not content or "\n" in content:
        raise ImproperlyConfigured(f"{name}_FILE={path} must contain a single line with the value of {name}.")
    return content


def flag(name: str, default: str = "0") -> bool:
    value = text(name, default).lower()
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name}={value!r} must be 1 or 0.")


def number(name: str, default: int, low: int, high: int) -> int:
    value = text(name, str(default))
    if not value.isdecimal() or not low <= int(value) <= high:
        raise ImproperlyConfigured(f"{name}={value!r} must be a whole number from {low} to {high}.")
    return int(value)


def names(name: str, default: str = "") -> list[str]:
    return [part.strip() for part in text(name, default).split(",") if part.strip()]


def json_object(name: str, example: str) -> dict[str, Any]:
    """Return the JSON object in a setting, or in the file that it names; `example` shows its form."""
    value = text(name)
    if not value:
        return {}
    try:
        content = json.loads(value if value.startswith("{") else Path(value).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ImproperlyConfigured(f"{name}={value[:200]} cannot be read: {why}.") from error
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is not valid JSON: {error}.") from None
    if not isinstance(content, dict):
        raise ImproperlyConfigured(f"{name} must be a JSON object: {example}.")
    return content


def data_folder() -> Path:
    folder = Path(text("EVALAPP_DATA", "data")).expanduser().resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(
            f"EVALAPP_DATA={folder} cannot be created ({error.strerror}). Choose a folder that this user can write to."
        ) from error
    if not os.access(folder, os.W_OK):
        raise ImproperlyConfigured(
            f"EVALAPP_DATA={folder} is not writable. Choose a folder that this user can write to."
        )
    return folder


def secret_key(folder: Path) -> str:
    """Return SECRET_KEY, or the key that the first start generates in the data folder (mode 600)."""
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
            f"{path} is {'damaged' if key else 'empty'}. Restore it from a backup, or set SECRET_KEY. If you "
            "have neither, delete the file: the next start generates a new key, and all users must sign in again."
        )
    return key


def _make_key(path: Path) -> None:
    """Generate the key under a temporary name and link it into place, so that the file is never incomplete and
    processes that start at the same time agree on one key."""
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


#: Passwords that appear in many examples.
_NEW_PASSWORD = "Set a new one, for example from: python3 -c 'import secrets; print(secrets.token_urlsafe(24))'"
KNOWN_PASSWORDS = frozenset({"password", "postgres", "changeme", "change-me", "secret", "admin", "evalapp", "redis"})


def address(name: str, schemes: set[str]) -> str:
    """Return the URL of a server; check its scheme and refuse well-known passwords."""
    value = text(name)
    try:
        parts = urlsplit(value)
        if value != "sqlite://:memory:":  # urlsplit would read ':memory:' as a port
            parts.port  # noqa: B018 - reading it validates it
    except ValueError:  # its message may contain the password
        raise ImproperlyConfigured(
            f"{name} is not a valid address. Percent-encode special characters in user name and password (@ is %40)."
        ) from None
    if value and parts.scheme not in schemes:
        raise ImproperlyConfigured(f"{name} must start with one of: {', '.join(sorted(schemes))} (then ://).")
    if parts.hostname not in (None, "127.0.0.1", "localhost", "::1") and parts.password in KNOWN_PASSWORDS:
        raise ImproperlyConfigured(f"{name} contains a well-known password. " + _NEW_PASSWORD)
    return value


def password(name: str) -> str:
    """Return the password of a server that is set separately from its address."""
    value = text(name)
    if value in KNOWN_PASSWORDS:
        raise ImproperlyConfigured(f"{name} is a well-known password. " + _NEW_PASSWORD)
    return value


def hosts(debug: bool) -> list[str]:
    value = names("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")
    if any("*" in host or host.startswith(".") for host in value):
        raise ImproperlyConfigured("ALLOWED_HOSTS must name hosts, without wildcards: evalapp.example.org,127.0.0.1")
    if debug and set(value) - {"127.0.0.1", "localhost", "[::1]", "testserver"}:
        raise ImproperlyConfigured("DEBUG=1 is refused when ALLOWED_HOSTS names a public host. Set DEBUG=0.")
    return value


def origins() -> list[str]:
    """Return CSRF_TRUSTED_ORIGINS. These origins may send forms, so wildcards and plain HTTP are refused."""
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
                f"CSRF_TRUSTED_ORIGINS={origin!r} does not use TLS. Use a TLS proxy and an https:// origin."
            )
    return value


def hsts(behind_tls: bool) -> tuple[int, bool, bool]:
    """Return seconds, subdomains and preload of Strict-Transport-Security; zeros without TLS."""
    seconds, subdomains = number("HSTS_SECONDS", 31_536_000, 0, 315_360_000), flag("HSTS_SUBDOMAINS", "1")
    may_preload = subdomains and seconds >= 31_536_000
    preload = flag("HSTS_PRELOAD", "1" if may_preload else "0")
    if preload and not may_preload:
        raise ImproperlyConfigured(
            "HSTS_PRELOAD=1 requires HSTS_SUBDOMAINS=1 and HSTS_SECONDS of at least 31536000 (one year)."
        )
    return (seconds, subdomains, preload) if behind_tls else (0, False, False)


_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def webhook_hosts() -> tuple[frozenset[str], tuple[_Network, ...]]:
    """Return the hosts of WEBHOOK_HOSTS, such as `hooks.example.org` and `[fd00::5]:8080`, and its networks. An
    address is both: a host, and a network with a single address."""
    hosts, networks = set(), []
    for entry in names("WEBHOOK_HOSTS"):
        if "/" in entry:
            networks.append(_read_network(entry))
            continue
        match = re.fullmatch(r"(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9.-]*[a-z0-9])?)(:([0-9]{1,5}))?", entry.lower())
        if match is None or not 0 < int(match[4] or 443) < 65_536:
            raise ImproperlyConfigured(
                f"WEBHOOK_HOSTS: {entry!r} must be a host such as hooks.example.org or hooks.example.org:8443, or a "
                "network such as 10.1.2.0/24; no wildcards, no https://."
            )
        hosts.add(entry.lower())
        if match[1].startswith("[") or re.fullmatch(r"[0-9.]+", match[1]):
            networks.append(_read_network(match[1].strip("[]")))
    return frozenset(hosts), tuple(networks)


def _read_network(entry: str) -> _Network:
    try:
        return ipaddress.ip_network(entry)
    except ValueError as error:
        raise ImproperlyConfigured(f"WEBHOOK_HOSTS: {error}.") from None


def backup_folder() -> str:
    """Return the folder of the daily backups, which must exist; empty without one."""
    value = text("BACKUP_FOLDER")
    if value and not Path(value).expanduser().is_dir():
        raise ImproperlyConfigured(f"BACKUP_FOLDER={value!r} is not a folder. Create it first.")
    return str(Path(value).expanduser().resolve()) if value else ""


def time_of_day(name: str, default: str) -> tuple[int, int]:
    """Return hour and minute of a setting such as 03:30."""
    value = text(name, default)
    match = re.fullmatch(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", value)
    if match is None:
        raise ImproperlyConfigured(f"{name}={value!r} must be a time such as 03:30.")
    return int(match[1]), int(match[2])


def sub_path() -> str:
    """Return the path of the site on its host, without a slash at the end; empty for the root."""
    value = text("SUB_PATH").rstrip("/")
    if value and not re.fullmatch(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+", value):
        raise ImproperlyConfigured(f"SUB_PATH={value!r} must be a path such as /evalapp.")
    return value


def site_url(path: str, allowed: list[str], behind_tls: bool) -> str:
    """Return the origin in SITE_URL without a slash at the end. `path` is SUB_PATH, which may be part of the setting;
    `allowed` are the hosts of the site."""
    local = {"127.0.0.1", "localhost", "[::1]"}
    host = next((name for name in allowed if name not in local), "")
    default = f"http{'s' if behind_tls else ''}://{host}" if host else f"http://127.0.0.1:{text('PORT', '8000')}"
    value = text("SITE_URL", default).rstrip("/")
    value = value.removesuffix(path) if path else value
    if not re.fullmatch(r"https?://[^/?#@\s]+", value):
        raise ImproperlyConfigured(f"SITE_URL={value!r} must be an address such as https://evalapp.example.org.")
    return value


def token(name: str) -> str:
    """Return a secret token of at least 24 characters; empty if it is not set."""
    value = text(name)
    if value and len(value) < 24:
        raise ImproperlyConfigured(
            f"{name} is too short. Use at least 24 random characters, for example from: "
            "python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    return value


#: Scheme of EMAIL_URL -> module of Django's mail backend.
_MAIL_BACKENDS = {
    "smtp": "smtp", "smtps": "smtp", "smtp+tls": "smtp", "smtp+ssl": "smtp", "consolemail": "console",
    "filemail": "filebased", "memorymail": "locmem", "dummymail": "dummy",
}  # fmt: skip


def mail() -> dict[str, Any]:
    """Return Django's EMAIL_* settings for EMAIL_URL: `smtp+tls://user:password@host:587`."""
    url = urlsplit(text("EMAIL_URL", "consolemail://"))
    if url.scheme not in _MAIL_BACKENDS:
        raise ImproperlyConfigured(f"EMAIL_URL must start with one of: {', '.join(_MAIL_BACKENDS)} (then ://).")
    try:
        port = url.port or 25
    except ValueError:  # its message may contain the password
        raise ImproperlyConfigured("EMAIL_URL has a port that is not a number from 0 to 65535.") from None
    query = {key.upper(): value for key, value in parse_qsl(url.query)}
    return {
        "EMAIL_BACKEND": f"django.core.mail.backends.{_MAIL_BACKENDS[url.scheme]}.EmailBackend",
        "EMAIL_FILE_PATH": unquote_plus(url.path[1:]) or None,
        "EMAIL_HOST": url.hostname or "localhost",
        "EMAIL_PORT": port,
        "EMAIL_HOST_USER": unquote_plus(url.username or ""),
        "EMAIL_HOST_PASSWORD": unquote_plus(url.password or ""),
        "EMAIL_USE_TLS": url.scheme in ("smtps", "smtp+tls") or query.get("EMAIL_USE_TLS", "0") not in ("0", ""),
        "EMAIL_USE_SSL": url.scheme == "smtp+ssl" or query.get("EMAIL_USE_SSL", "0") not in ("0", ""),
    }
