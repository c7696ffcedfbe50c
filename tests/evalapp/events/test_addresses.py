"""Where webhooks are sent to: allowed hosts only, no internal addresses behind their names, TLS outside."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from evalapp.common.errors import BadInput
from evalapp.events.services import sending
from evalapp.events.services.addresses import Undelivered, check_address, read_address, resolve
from evalapp.events.services.sending import post
from evalapp.settings import env

from .conftest import allow
from .receiver import run_receiver

PUBLIC = "93.184.216.34"


class Names(dict[str, list[str]]):
    """Names and the addresses to which they resolve; `asked` are those that were resolved."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def resolve(self, host: str, port: int, *arguments: object, **options: object) -> list[tuple]:
        if host[0].isdigit():  # addresses stay as they are
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]
        self.asked.append(host)
        if host not in self:
            raise socket.gaierror("no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in self[host]]


@pytest.fixture
def names(monkeypatch) -> Names:
    names = Names()
    monkeypatch.setattr(socket, "getaddrinfo", names.resolve)
    return names


def find_problem(url: str) -> str:
    with pytest.raises(Undelivered) as refused:
        post(url, b"{}", {})
    return str(refused.value.problem)


@pytest.mark.promise("no-fetch")
@pytest.mark.parametrize(
    ("entry", "url", "is_allowed"),
    [
        ("hooks.example.org", "https://hooks.example.org/x", True),
        ("hooks.example.org", "https://HOOKS.example.org:443/x", True),
        ("hooks.example.org", "https://hooks.example.org:8443/x", False),
        ("hooks.example.org:8443", "https://hooks.example.org:8443/x", True),
        ("hooks.example.org", "https://other.example.org/x", False),
        ("hooks.example.org", "https://hooks.example.org.evil.org/x", False),
        ("hooks.example.org", "https://evil.hooks.example.org/x", False),
        ("hooks.example.org", "https://hooks.example.org./x", False),
        ("[fd00::5]:8080", "http://[fd00::5]:8080/x", True),
        ("10.0.0.5", "http://10.0.0.5/x", True),
        ("10.0.0.5", "http://167772165/x", False),
    ],
)
def test_only_allowed_hosts_are_accepted(settings, monkeypatch, entry, url, is_allowed):
    monkeypatch.setenv("WEBHOOK_HOSTS", entry)
    settings.WEBHOOK_HOSTS, settings.WEBHOOK_NETWORKS = env.webhook_hosts()
    if is_allowed:
        check_address(url)
        return
    with pytest.raises(BadInput, match="not allowed"):
        check_address(url)
    assert find_problem(url) == "host"


@pytest.mark.parametrize(
    "url",
    [
        "", "hooks.example.org", "ftp://hooks.example.org/", "https://", "https://anna:pw@hooks.example.org/",
        "https://hooks.example.org@evil.org/", "https://hooks.example.org/#x", "https://hooks.example.org:99999/",
        "https://hooks.example.org/a b", "https://hooks.example.org/\r\nX: y", "https://höoks.example.org/",
        "https://[::1/", "javascript:alert(1)",
    ],
)  # fmt: skip
def test_other_texts_are_no_address(settings, url):
    allow(settings, "hooks.example.org")
    with pytest.raises(BadInput) as refused:
        check_address(url)
    assert [fault.field for fault in refused.value.faults] == ["url"]
    assert "pw" not in refused.value.detail


def test_without_the_setting_webhooks_are_off():
    with pytest.raises(BadInput, match="WEBHOOK_HOSTS"):
        check_address("https://hooks.example.org/")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
        "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fd00::1", "::ffff:10.1.2.3", "64:ff9b::a01:203",
        "2002:a01:203::1", "ff02::1",
    ],
)  # fmt: skip
def test_a_name_must_not_lead_to_an_internal_host(settings, names, monkeypatch, address):
    monkeypatch.setattr(socket, "create_connection", lambda *arguments, **options: pytest.fail("it connects"))
    allow(settings, "hooks.example.org")
    names["hooks.example.org"] = [PUBLIC, address]
    assert find_problem("https://hooks.example.org/") == "internal"


@pytest.mark.parametrize(
    ("network", "address"),
    [
        ("10.1.0.0/16", "10.1.2.3"),
        ("10.1.0.0/16", "::ffff:10.1.2.3"),
        ("fd00::/8", "fd00::1"),
        ("127.0.0.1/32", "127.0.0.1"),
    ],
)
def test_an_internal_network_can_be_allowed(settings, names, network, address):
    allow(settings, "receiver.lan:8080", networks=(network,))
    names["receiver.lan"] = [address]
    assert resolve(read_address("http://receiver.lan:8080/")) == [address]
    assert resolve(read_address("https://receiver.lan:8080/")) == [address]
    names["receiver.lan"] = ["10.2.0.1"]
    assert find_problem("http://receiver.lan:8080/") == "internal"


def test_a_public_host_needs_tls(settings, names):
    allow(settings, "hooks.example.org")
    names["hooks.example.org"] = [PUBLIC]
    assert find_problem("http://hooks.example.org/") == "plain"
    assert resolve(read_address("https://hooks.example.org/")) == [PUBLIC]


def test_a_name_that_does_not_exist(settings, names):
    allow(settings, "hooks.example.org")
    assert find_problem("https://hooks.example.org/") == "name"


def test_the_checked_address_is_used(settings, names):
    """A name that resolves to something else the second time (DNS rebinding): it is resolved once."""
    with run_receiver() as receiver:
        allow(settings, f"hooks.example.org:{receiver.port}", networks=("127.0.0.1/32",))
        names["hooks.example.org"] = ["127.0.0.1"]
        assert post(f"http://hooks.example.org:{receiver.port}/", b"{}", {}) == 204
        assert names.asked == ["hooks.example.org"]
        assert receiver.requests[0].headers["Host"] == f"hooks.example.org:{receiver.port}"


@pytest.fixture
def certificate(tmp_path) -> Path:
    """A certificate for `hooks.example.org` that signs itself, with its key."""
    file = tmp_path / "both.pem"
    key, own = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=hooks.example.org", "-addext", "subjectAltName=DNS:hooks.example.org", "-days", "2"]
    subprocess.run([*command, "-keyout", key, "-out", own], check=True, capture_output=True)
    file.write_bytes(key.read_bytes() + own.read_bytes())
    return file


@pytest.mark.parametrize(("name", "problem"), [("hooks.example.org", ""), ("wrong.example.org", "certificate")])
def test_the_certificate_must_fit_the_name(settings, names, monkeypatch, certificate, name, problem):
    with run_receiver(certificate) as receiver:
        authority = f"{name}:{receiver.port}"
        allow(settings, authority, networks=("127.0.0.1/32",))
        names[name] = ["127.0.0.1"]
        assert find_problem(f"https://{authority}/") == "certificate", "nobody trusts it yet"
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        if problem:
            assert find_problem(f"https://{authority}/") == problem
        else:
            assert post(f"https://{authority}/", b"{}", {}) == 204
        assert len(receiver.requests) == (not problem)


def test_a_receiver_that_is_not_there_or_speaks_no_http(settings):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        allow(settings, f"127.0.0.1:{port}", networks=("127.0.0.1/32",))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sending, "TOTAL_SECONDS", 0.3)
            assert find_problem(f"http://127.0.0.1:{port}/") == "slow"
    assert find_problem(f"http://127.0.0.1:{port}/") == "connection"


@pytest.mark.parametrize(
    ("value", "hosts", "networks"),
    [
        ("", set(), []),
        ("Hooks.example.org, receiver.lan:8080", {"hooks.example.org", "receiver.lan:8080"}, []),
        ("10.1.2.0/24,10.9.9.9:80", {"10.9.9.9:80"}, ["10.1.2.0/24", "10.9.9.9/32"]),
        ("[fd00::5]:8080,fd00::/8", {"[fd00::5]:8080"}, ["fd00::5/128", "fd00::/8"]),
    ],
)
def test_setting(monkeypatch, value, hosts, networks):
    monkeypatch.setenv("WEBHOOK_HOSTS", value)
    found_hosts, found_networks = env.webhook_hosts()
    assert found_hosts == hosts
    assert [str(network) for network in found_networks] == networks


@pytest.mark.parametrize(
    "value",
    [
        "*",
        "*.example.org",
        ".example.org",
        "https://a.example.org",
        "a.org:0",
        "a.org:99999",
        "10.1.2.3/24",
        "300.1.1.1",
    ],
)
def test_wrong_setting(monkeypatch, value):
    monkeypatch.setenv("WEBHOOK_HOSTS", value)
    with pytest.raises(ImproperlyConfigured, match="WEBHOOK_HOSTS"):
        env.webhook_hosts()
