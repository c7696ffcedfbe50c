"""Secrets from files, and passwords separate from addresses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from evalapp.settings import base, env

ROOT = Path(__file__).resolve().parents[3]
KEY = "".join(chr(33 + (7 * n) % 90) for n in range(64))


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    for setting in env.SETTINGS:
        monkeypatch.delenv(setting.name, raising=False)
        monkeypatch.delenv(f"{setting.name}_FILE", raising=False)


def test_every_secret_may_come_from_a_file(tmp_path, monkeypatch):
    for setting in env.SETTINGS:
        path = tmp_path / setting.name
        path.write_text(f"  of-a-file-{setting.name}\n")
        monkeypatch.setenv(f"{setting.name}_FILE", str(path))
        assert env.text(setting.name, "usual") == (f"of-a-file-{setting.name}" if setting.secret else "usual")
    named = {setting.name for setting in env.SETTINGS if setting.secret}
    assert {"SECRET_KEY", "DATABASE_PASSWORD", "REDIS_PASSWORD", "EMAIL_URL", "METRICS_TOKEN"} <= named


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        (b"\n", "single line"),
        (b"a\nb\n", "single line"),
        (b"\xff\xfe", "not text"),
    ],
)
def test_file_without_a_secret_is_refused(tmp_path, monkeypatch, content, words):
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("SECRET_KEY_FILE", str(path))
    with pytest.raises(ImproperlyConfigured, match=words):
        env.secret_key(tmp_path)


def test_secret_has_one_source(tmp_path, monkeypatch):
    path = tmp_path / "secret"
    path.write_text(KEY)
    monkeypatch.setenv("SECRET_KEY_FILE", str(path))
    assert env.secret_key(tmp_path) == KEY
    monkeypatch.setenv("SECRET_KEY", KEY)
    with pytest.raises(ImproperlyConfigured, match="Keep only one"):
        env.secret_key(tmp_path)


def test_concurrently_started_processes_agree_on_one_key(tmp_path):
    code = (
        "import sys, pathlib; from evalapp.settings import env; print('here', flush=True); sys.stdin.readline(); "
        "print(env.secret_key(pathlib.Path(sys.argv[1])))"
    )
    others = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    assert [process.stdout.readline() for process in others] == ["here\n"] * 4
    for process in others:
        process.stdin.write("go\n")
        process.stdin.flush()
    [key] = {process.communicate(timeout=300)[0].strip() for process in others}
    assert (tmp_path / "secret_key").read_text() == key == env.secret_key(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]
    assert (tmp_path / "secret_key").stat().st_mode & 0o777 == 0o600


def test_file_system_without_hard_links_also_gets_a_key(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    assert env.secret_key(tmp_path) == env.secret_key(tmp_path)


@pytest.mark.parametrize("content", [b"", b"  \n", b"short", b"\0" * 86, b"a" * 86, b"\xff\xfe" * 43])
def test_empty_or_damaged_key_is_refused_and_left_unchanged(tmp_path, content):
    """Never replaced silently: another key signs everybody out and invalidates each link in a mail. An interrupted
    start cannot leave an empty file, since the key is written before the file gets its name."""
    path = tmp_path / "secret_key"
    path.write_bytes(content)
    with pytest.raises(ImproperlyConfigured, match=r"secret_key is (empty|damaged).*SECRET_KEY"):
        env.secret_key(tmp_path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, (31_536_000, True, True)),
        ({"HSTS_SUBDOMAINS": "0"}, (31_536_000, False, False)),
        ({"HSTS_PRELOAD": "0"}, (31_536_000, True, False)),
        ({"HSTS_SECONDS": "60"}, (60, True, False)),
        ({"HSTS_SECONDS": "0", "HSTS_SUBDOMAINS": "0"}, (0, False, False)),
    ],
)
def test_hsts_follows_the_setting(monkeypatch, values, found):
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    assert env.hsts(True) == found
    assert env.hsts(False) == (0, False, False)


@pytest.mark.parametrize(
    "values", [{"HSTS_PRELOAD": "1", "HSTS_SUBDOMAINS": "0"}, {"HSTS_PRELOAD": "1", "HSTS_SECONDS": "9"}]
)
def test_preload_meets_the_requirements_of_browser_lists(monkeypatch, values):
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match="HSTS_PRELOAD"):
        env.hsts(True)


def test_separate_passwords_reach_their_servers(monkeypatch):
    strange = "a/b@c:d%e"
    monkeypatch.setenv("DATABASE_URL", "postgres://evalapp@db.example.org:5432/evalapp")
    monkeypatch.setenv("DATABASE_PASSWORD", strange)
    monkeypatch.setenv("REDIS_URL", "redis://redis.example.org:6379/3")
    monkeypatch.setenv("REDIS_PASSWORD", strange)
    config = base.database()
    assert (config["USER"], config["PASSWORD"], config["HOST"]) == ("evalapp", strange, "db.example.org")
    import redis
    from kombu.utils.url import parse_url

    found = redis.Redis.from_url(base.redis_url()).connection_pool.connection_kwargs
    assert (found["host"], found["password"], found["db"]) == ("redis.example.org", strange, 3)
    assert parse_url(base.redis_url())["password"] == strange
    monkeypatch.delenv("DATABASE_PASSWORD")
    monkeypatch.setenv("DATABASE_URL", "postgres://evalapp:inside@db.example.org:5432/evalapp")
    assert base.database()["PASSWORD"] == "inside"


@pytest.mark.parametrize(
    "wrong", ["mysql://anna:{}@host/db", "postgres://anna:{}[@host/db", "postgres://anna:{}#@host:x/db"]
)
def test_descriptions_of_an_address_hide_its_password(monkeypatch, wrong):
    monkeypatch.setenv("DATABASE_URL", wrong.format("hidden"))
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL") as error:
        base.database()
    assert "hidden" not in str(error.value)


def test_in_memory_database_needs_no_port(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "sqlite://:memory:")
    assert base.database()["NAME"] == ":memory:"


def test_data_folder_may_have_any_name(monkeypatch, tmp_path):
    folder = tmp_path / "run #2, 50%41?"
    monkeypatch.setattr(base, "DATA_DIR", folder)
    assert base.database()["NAME"] == str(folder / "evalapp.sqlite3")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"DATABASE_PASSWORD": "kept-by-nobody"}, "names no PostgreSQL server"),
        ({"REDIS_PASSWORD": "kept-by-nobody"}, "without password"),
        ({"REDIS_PASSWORD": "new", "REDIS_URL": "redis://:old@127.0.0.1:6379/0"}, "without password"),
        ({"REDIS_PASSWORD": "changeme", "REDIS_URL": "redis://127.0.0.1:6379/0"}, "well-known"),
    ],
)
def test_password_without_its_server_is_refused(monkeypatch, values, words):
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=words):
        _ = base.database(), base.redis_url()


def test_invalid_file_stops_the_start_with_one_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "EVALAPP_DATA": str(tmp_path), "SECRET_KEY_FILE": str(tmp_path / "none")},
    )  # fmt: skip
    assert done.returncode != 0
    assert "SECRET_KEY_FILE=" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("url", "backend", "host", "port", "tls", "ssl"),
    [
        ("", "console", "localhost", 25, False, False),
        ("smtp://mail.example.org", "smtp", "mail.example.org", 25, False, False),
        ("smtp+tls://anna:a%40b+c@mail.example.org:587", "smtp", "mail.example.org", 587, True, False),
        ("smtps://mail.example.org:587", "smtp", "mail.example.org", 587, True, False),
        ("smtp+ssl://mail.example.org:465", "smtp", "mail.example.org", 465, False, True),
        ("memorymail://", "locmem", "localhost", 25, False, False),
    ],
)
def test_mail_addresses(monkeypatch, url, backend, host, port, tls, ssl):
    monkeypatch.setenv("EMAIL_URL", url)
    mail = env.mail()
    assert mail["EMAIL_BACKEND"] == f"django.core.mail.backends.{backend}.EmailBackend"
    assert (mail["EMAIL_HOST"], mail["EMAIL_PORT"]) == (host, port)
    assert (mail["EMAIL_USE_TLS"], mail["EMAIL_USE_SSL"]) == (tls, ssl)
    assert mail["EMAIL_HOST_PASSWORD"] == ("a@b c" if "anna" in url else "")


@pytest.mark.parametrize("url", ["mail.example.org", "http://anna:hidden@host", "smtp://anna:hidden@host:port"])
def test_a_wrong_mail_address_is_refused_without_its_password(monkeypatch, url):
    monkeypatch.setenv("EMAIL_URL", url)
    with pytest.raises(ImproperlyConfigured) as refused:
        env.mail()
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    ("value", "path", "hosts", "tls", "found"),
    [
        ("", "", ["127.0.0.1", "localhost"], False, "http://127.0.0.1:8000"),
        ("", "/app", ["localhost", "a.example.org", "b.example.org"], True, "https://a.example.org"),
        ("https://b.example.org/app/", "/app", ["a.example.org"], True, "https://b.example.org"),
        ("http://b.example.org:8410", "", ["a.example.org"], False, "http://b.example.org:8410"),
    ],
)
def test_address_of_the_site(monkeypatch, value, path, hosts, tls, found):
    monkeypatch.setenv("SITE_URL", value)
    assert env.site_url(path, hosts, tls) == found


@pytest.mark.parametrize("value", ["evalapp.example.org", "https://a.example.org/other", "https://anna@a.example.org"])
def test_an_address_of_the_site_that_mails_cannot_use_is_refused(monkeypatch, value):
    monkeypatch.setenv("SITE_URL", value)
    with pytest.raises(ImproperlyConfigured, match="SITE_URL"):
        env.site_url("/app", ["a.example.org"], True)


def test_behind_a_pooler_nothing_depends_on_the_session(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgres://evalapp@db.example.org:6432/evalapp")
    assert "plan_cache_mode" in base.database()["OPTIONS"]["options"]
    monkeypatch.setattr(base, "DATABASE_POOLER", True)
    config = base.database()
    assert config["DISABLE_SERVER_SIDE_CURSORS"]
    assert "options" not in config["OPTIONS"]  # PgBouncer refuses start-up options
