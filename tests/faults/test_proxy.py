"""The site behind a real nginx with the configuration of docs/operations/proxy.md: TLS, uploads, a path on its host."""

from __future__ import annotations

import json
import re
import signal
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher

from annotation.models import Item
from evalapp.accounts.services import create_token
from evalapp.ops.ports import find_free_port
from tests.cast import PASSWORD, Cast, make_cast
from tests.docs.test_proxy import block
from tests.evalapp.accounts.oidc_server import CLIENT, SECRET, oidc_server
from tests.evalapp.common.conftest import wait_until
from tests.services import installing

from .stack import Stack

pytestmark = [pytest.mark.server, pytest.mark.slow]
HOST = "evalapp.example.org"
N_ITEMS = 3000


@contextmanager
def start_nginx(folder: Path, backend: str, sub_path: str = "") -> Iterator[tuple[int, int]]:
    """Start nginx with the documented file on free ports; yield the ports of HTTPS and HTTP."""
    try:
        program = installing.nginx_program()
    except installing.ServerUnavailable as error:
        pytest.skip(str(error))
    folder.mkdir()
    key, certificate = folder / "privkey.pem", folder / "fullchain.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={HOST}",
         "-addext", f"subjectAltName=DNS:{HOST}", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    secure, plain = find_free_port(), find_free_port()
    server = block("nginx").replace("/etc/ssl/evalapp", str(folder)).replace("http://127.0.0.1:8000", backend)
    server = server.replace("listen 443 ssl;", f"listen 127.0.0.1:{secure} ssl;")
    server = server.replace("listen 80;", f"listen 127.0.0.1:{plain};")
    if sub_path:
        assert "location / {" in server
        server = server.replace("location / {", f"location {sub_path}/ {{")
    (folder / "nginx.conf").write_text(
        f"user root; daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;\n"
        f"events {{}} http {{ access_log off; client_body_temp_path {folder}/bodies; {server} }}"
    )
    child = subprocess.Popen([program, "-p", folder, "-c", folder / "nginx.conf"], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _answers(secure))
        yield secure, plain
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(20)


def _answers(port: int) -> bool:
    try:
        httpx.get(f"https://127.0.0.1:{port}/", verify=False)
    except httpx.TransportError:
        return False
    return True


class ToNginx(httpx.HTTPTransport):
    """Sends requests to the named host to the ports of nginx; the certificate is checked."""

    def __init__(self, folder: Path, secure: int, plain: int) -> None:
        super().__init__(verify=ssl.create_default_context(cafile=folder / "fullchain.pem"))
        self.ports = {"https": secure, "http": plain}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url.copy_with(host="127.0.0.1", port=self.ports[request.url.scheme])
        extensions = {**request.extensions, "sni_hostname": HOST}
        sent = httpx.Request(request.method, url, headers=request.headers, stream=request.stream, extensions=extensions)
        return super().handle_request(sent)


def start_site(stack: Stack, sub_path: str = "", providers: str = "") -> None:
    """Start the site with the settings of production."""
    stack.env |= {
        "DJANGO_SETTINGS_MODULE": "evalapp.settings",
        "SECURE_PROXY": "1", "ALLOWED_HOSTS": f"{HOST},127.0.0.1", "CSRF_TRUSTED_ORIGINS": f"https://{HOST}",
        "SUB_PATH": sub_path, "OIDC_PROVIDERS": providers, "UNI_SECRET": SECRET,
    }  # fmt: skip
    assert stack.manage("collectstatic", "--no-input").returncode == 0
    stack.start("redis", "web", "work")


def sign_in(browser: httpx.Client, address: str) -> httpx.Response:
    form = browser.get(f"{address}/account/sign-in/")
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form.text)[1]
    data = {"csrfmiddlewaretoken": token, "username": "olga", "password": PASSWORD}
    return browser.post(f"{address}/account/sign-in/", data=data, headers={"Referer": f"{address}/account/sign-in/"})


@pytest.mark.parametrize("sub_path", ["", "/tools/evalapp"])
def test_site_works_behind_nginx(stack: Stack, tmp_path: Path, sub_path: str) -> None:
    cast = make_cast()
    hasher = Argon2PasswordHasher()
    cast.owner.password = hasher.encode(PASSWORD, hasher.salt())
    cast.owner.save()
    folder, address = tmp_path / "nginx", f"https://{HOST}{sub_path}"
    with oidc_server() as provider:
        row = {"label": "Uni", "issuer": provider.issuer, "client_id": CLIENT, "secret_env": "UNI_SECRET"}
        start_site(stack, sub_path, json.dumps({"uni": {**row, "match_email": True}}))
        with (
            start_nginx(folder, stack.url, sub_path) as ports,
            httpx.Client(transport=ToNginx(folder, *ports), timeout=60) as browser,
        ):
            check_tls(browser, sub_path)
            check_institution(browser, address, sub_path)
            check_pages(browser, address, sub_path)
            check_upload(browser, address, cast)


def check_tls(browser: httpx.Client, sub_path: str) -> None:
    plain = browser.get(f"http://{HOST}{sub_path}/")
    assert (plain.status_code, plain.headers["Location"]) == (301, f"https://{HOST}{sub_path}/")
    page = browser.get(f"https://{HOST}{sub_path}/account/sign-in/")
    assert page.status_code == 200
    assert page.headers["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains; preload"
    cookie = page.headers["Set-Cookie"]
    assert "Secure" in cookie
    assert f"Path={sub_path}/;" in cookie


def check_institution(browser: httpx.Client, address: str, sub_path: str) -> None:
    """The provider gets the public address, and its response comes back to the session that began."""
    begun = browser.get(f"{address}/account/oidc/uni/")
    answered = httpx.get(begun.headers["Location"])
    assert answered.headers["Location"].startswith(f"{address}/account/oidc/uni/callback/?")
    entered = browser.get(answered.headers["Location"])
    assert (entered.status_code, entered.headers["Location"]) == (302, f"{sub_path}/")
    assert "rita@example.org" in browser.get(f"{address}/account/").text
    browser.cookies.clear()


def check_pages(browser: httpx.Client, address: str, sub_path: str) -> None:
    """Every address on a page leads to the site again: links, styles, redirects, the answer to a wrong address."""
    entered = sign_in(browser, address)
    assert entered.status_code == 302
    assert entered.headers["Location"] == f"{sub_path}/"
    for path in ("/", "/projects/alpha/", "/projects/alpha/uploads/", "/docs/"):
        page = browser.get(f"{address}{path}")
        assert page.status_code == 200, path
        found = re.findall(r'(?:href|src|action|hx-get|hx-post)="(/[^"]*)"', page.text)
        assert found
        assert [each for each in found if not each.startswith(f"{sub_path}/")] == []
        static = {each for each in found if "/static/" in each}
        assert {browser.get(f"https://{HOST}{each}").status_code for each in static} == {200}
    wrong = browser.get(f"{address}/projects/alpha/nothing/")
    assert wrong.status_code == 404
    assert f'href="{sub_path}/projects/alpha/"' in wrong.text
    missing = browser.get(f"{address}/api/v1/projects/nothing/")
    assert missing.json()["status"] == 404


def check_upload(browser: httpx.Client, address: str, cast: Cast) -> None:
    """A body larger than nginx's buffers arrives whole, and the API's own addresses lead back."""
    token = create_token(user=cast.owner, name="laptop", scopes=["read", "write"], project=cast.project)[1]
    rows = "".join(
        f'{{"id": "i{n}", "context": ["{"word " * 200}"], "source": null, "references": []}}\n' for n in range(N_ITEMS)
    )
    headers = {"Authorization": f"Bearer {token}"}
    sent = browser.post(
        f"{address}/api/v1/projects/alpha/uploads/", headers=headers, files={"items": ("items.jsonl", rows.encode())}
    )
    assert sent.status_code == 202, sent.text
    wait_until(lambda: Item.objects.filter(project=cast.project).count() == N_ITEMS, 120)
    listed = browser.get(f"{address}/api/v1/projects/alpha/items/", headers=headers).json()
    assert listed["next"].startswith(f"{address}/api/v1/projects/alpha/items/")
    assert browser.get(listed["next"], headers=headers).status_code == 200
