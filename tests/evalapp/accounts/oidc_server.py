"""A provider of OpenID Connect on a port of its own: discovery, authorisation code flow with PKCE, keys, user info and
signed tokens. `fault` makes it misbehave as a test asks.

https://openid.net/specs/openid-connect-core-1_0.html, RFC 7636 (PKCE)"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "evalapp", "client secret & more"


class OidcServer(ThreadingHTTPServer):
    """`claims` are those of the person who signs in; those in `info` are only in the user info."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.key = RSAKey.generate_key(2048, {"kid": "first", "use": "sig"})
        self.claims: dict[str, Any] = {"sub": "42", "email": "rita@example.org", "email_verified": True}
        self.info: dict[str, Any] = {}
        self.host, self.fault = "127.0.0.1", ""
        self.codes: dict[str, dict[str, str]] = {}
        self.tokens: set[str] = set()
        self.asked: list[dict[str, str]] = []

    @property
    def issuer(self) -> str:
        return f"http://{self.host}:{self.server_address[1]}/realm"

    def rotate_key(self, kid: str) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})

    def metadata(self) -> dict[str, Any]:
        issuer = "https://other.example.org" if self.fault == "issuer of metadata" else self.issuer
        return {
            "issuer": issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/keys",
            "end_session_endpoint": f"{self.issuer}/end",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            "code_challenge_methods_supported": ["S256"],
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """The person signs in at once; return the address to which the browser is sent."""
        self.asked.append(asked)
        assert (asked["client_id"], asked["response_type"], asked["code_challenge_method"]) == (CLIENT, "code", "S256")
        answer = {"state": asked["state"]}
        if self.fault == "refused":
            answer |= {"error": "access_denied", "error_description": "no\nsecond line"}
        else:
            code = secrets.token_urlsafe(16)
            self.codes[code] = asked
            answer["code"] = code
        return f"{asked['redirect_uri']}?{urlencode(answer)}"

    def exchange(self, form: dict[str, str], credentials: str) -> dict[str, Any] | None:
        asked = self.codes.pop(form.get("code", ""), None)
        name, _, secret = base64.b64decode(credentials.removeprefix("Basic ")).decode().partition(":")
        if asked is None or (unquote(name), unquote(secret)) != (CLIENT, SECRET):
            return None
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != asked["code_challenge"]:
            return None
        if form["redirect_uri"] != asked["redirect_uri"]:
            return None
        token = secrets.token_urlsafe(16)
        self.tokens.add(token)
        answer = {"access_token": token, "token_type": "Bearer", "expires_in": 60}
        return answer if self.fault == "no ID token" else answer | {"id_token": self._sign(asked["nonce"])}

    def _sign(self, nonce: str) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 60, "nonce": nonce, **self.claims}
        claims |= {
            "nonce": {"nonce": "another"},
            "audience": {"aud": "another-client"},
            "issuer": {"iss": "https://other.example.org"},
            "expired": {"iat": now - 4000, "exp": now - 3600},
            "subject": {"sub": 42},
        }.get(self.fault, {})
        if self.fault == "no nonce":
            del claims["nonce"]
        if self.fault == "unsigned":
            parts = [{"alg": "none"}, claims]
            encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
            return ".".join([*encoded, ""])
        key = RSAKey.generate_key(2048) if self.fault == "signature" else self.key
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, key)


class _Handler(BaseHTTPRequestHandler):
    server: OidcServer

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        server = self.server
        if server.fault == "down":
            return self._send(500, {"error": "server_error"})
        if server.fault == "not JSON" and address.path.endswith("openid-configuration"):
            return self._send(200, None)
        match address.path.removeprefix("/realm/"):
            case ".well-known/openid-configuration":
                return self._send(200, server.metadata())
            case "keys":
                return self._send(200, {"keys": [server.key.as_dict(private=False)]})
            case "userinfo":
                token = self.headers.get("Authorization", "").removeprefix("Bearer ")
                if token not in server.tokens:
                    return self._send(401, {"error": "invalid_token"})
                other = {"sub": "43"} if server.fault == "user info of another" else {}
                return self._send(200, {**server.claims, **server.info, **other})
            case "authorize":
                return self._redirect(server.authorize(dict(parse_qsl(address.query))))
            case "end":
                return self._redirect(dict(parse_qsl(address.query))["post_logout_redirect_uri"])
        return self._send(404, {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.server.fault == "token endpoint down":
            return self._send(502, {"error": "server_error"})
        answer = self.server.exchange(dict(parse_qsl(body)), self.headers.get("Authorization", ""))
        return self._send(200, answer) if answer else self._send(400, {"error": "invalid_grant"})

    def _redirect(self, address: str) -> None:
        self.send_response(302)
        self.send_header("Location", address)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, status: int, answer: Any) -> None:
        body = b"<html>maintenance</html>" if answer is None else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Tests do not print requests."""


@contextmanager
def oidc_server() -> Iterator[OidcServer]:
    with OidcServer() as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
