"""The configurations in docs/operations/proxy.md agree with the settings, and the programs accept them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from django.conf import settings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations" / "proxy.md"


def block(language: str) -> str:
    return re.search(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]


def test_configurations_agree_with_the_settings():
    megabytes = settings.MAX_UPLOAD_BYTES // 1_000_000
    nginx, caddy = block("nginx"), block("caddyfile")
    assert f"client_max_body_size {megabytes}m;" in nginx
    assert f"max_size {megabytes}MB" in caddy
    assert "proxy_request_buffering on;" in nginx
    for header in ("Host $host", "X-Forwarded-Proto $scheme", "X-Forwarded-For $proxy_add_x_forwarded_for"):
        assert f"proxy_set_header {header};" in nginx
    assert "127.0.0.1:8000" in nginx
    assert "127.0.0.1:8000" in caddy


@pytest.mark.skipif(shutil.which("caddy") is None, reason="Caddy is not installed")
def test_caddy_accepts_its_file(tmp_path):
    (tmp_path / "Caddyfile").write_text(block("caddyfile"))
    done = subprocess.run(
        ["caddy", "validate", "--adapter", "caddyfile", "--config", tmp_path / "Caddyfile"],
        capture_output=True, text=True, check=False, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
