"""Read and validate JUDGE_ENDPOINTS: servers and folders of language models that may judge texts."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from . import env

#: Members of an endpoint in JUDGE_ENDPOINTS with their defaults; None: it must be given.
_ENDPOINT: dict[str, Any] = {
    "url": None, "models": None, "key_env": "", "key_file": "", "at_once": 8, "price_in": 0.0, "price_out": 0.0,
    "timeout": 60.0, "logprobs": True,
}  # fmt: skip
#: Members of a model in a folder. `batch_tokens` 0: as many as suit the device.
_FOLDER: dict[str, Any] = {"folder": None, "dtype": "fp32", "device": "auto", "batch_tokens": 0}


def read_endpoints() -> dict[str, dict[str, Any]]:
    """Return the endpoints of JUDGE_ENDPOINTS by name, with all members of `_ENDPOINT` and `_FOLDER`.

    `folder` is "" for a server, `url` for a model in a folder. Keys and models are not read here.
    """
    content = env.json_object("JUDGE_ENDPOINTS", '{"name": {"url": ..., "models": [...]}}')
    return {name: read_endpoint(name, row) for name, row in content.items()}


def read_endpoint(name: str, row: Any) -> dict[str, Any]:
    """Return a row of JUDGE_ENDPOINTS with all members. Raises `ImproperlyConfigured` for mistakes."""
    place = f"JUDGE_ENDPOINTS, endpoint {name!r}"
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", name):
        raise ImproperlyConfigured(f"{place}: a name has a-z, 0-9 and hyphens, at most 40 characters.")
    if not isinstance(row, dict):
        raise ImproperlyConfigured(f"{place} must be an object with url and models, or with folder.")
    if "folder" in row:
        return _read_folder(place, row)
    if missing := [key for key in ("url", "models") if not row.get(key)]:
        raise ImproperlyConfigured(f"{place} has no {' and no '.join(missing)}.")
    if "key" in row:
        raise ImproperlyConfigured(f"{place}: put the key into a variable or file, and name it by key_env or key_file.")
    if unknown := sorted(set(row) - set(_ENDPOINT)):
        raise ImproperlyConfigured(f"{place}: {unknown[0]!r} is unknown. Known: {', '.join(_ENDPOINT)}.")
    row = {**_ENDPOINT, **row}
    if not isinstance(row["models"], list) or not all(isinstance(one, str) and one.strip() for one in row["models"]):
        raise ImproperlyConfigured(f"{place}: models must be a list of names.")
    if row["key_env"] and row["key_file"]:
        raise ImproperlyConfigured(f"{place}: give key_env or key_file, not both.")
    bounds = {"at_once": (1, 256), "price_in": (0, 1e6), "price_out": (0, 1e6), "timeout": (1, 3600)}
    for key, (low, high) in bounds.items():
        number = row[key]
        is_number = isinstance(number, int if key == "at_once" else int | float) and not isinstance(number, bool)
        if not is_number or not low <= number <= high:
            raise ImproperlyConfigured(f"{place}: {key} must be a number from {low} to {high:g}.")
    if not isinstance(row["logprobs"], bool):
        raise ImproperlyConfigured(f"{place}: logprobs must be true or false.")
    return {**_FOLDER, **row, "folder": "", "url": _check_endpoint_address(place, row["url"])}


def _read_folder(place: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a model in a folder of this machine; its name is that of the folder."""
    if unknown := sorted(set(row) - set(_FOLDER)):
        known = ", ".join(_FOLDER)
        raise ImproperlyConfigured(f"{place}: {unknown[0]!r} is unknown for a model in a folder. Known: {known}.")
    row = {**_FOLDER, **row}
    folder = row["folder"]
    if not isinstance(folder, str) or not Path(folder).is_absolute() or not Path(folder).name:
        raise ImproperlyConfigured(f"{place}: folder must be an absolute path such as /srv/models/judge.")
    if row["dtype"] not in ("fp32", "bf16"):
        raise ImproperlyConfigured(f"{place}: dtype must be fp32 or bf16.")
    if not isinstance(row["device"], str) or not re.fullmatch(r"auto|cpu|cuda(:[0-9]{1,2})?", row["device"]):
        raise ImproperlyConfigured(f"{place}: device must be auto, cpu, cuda, or such as cuda:1.")
    tokens = row["batch_tokens"]
    if not isinstance(tokens, int) or isinstance(tokens, bool) or not 0 <= tokens <= 10_000_000:
        raise ImproperlyConfigured(f"{place}: batch_tokens must be a whole number from 0 to 10000000.")
    return {**_ENDPOINT, **row, "url": "", "models": [Path(folder).name], "at_once": 1}


def _check_endpoint_address(place: str, url: Any) -> str:
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        parts.port  # noqa: B018 - reading it validates it
    except ValueError:
        raise ImproperlyConfigured(f"{place}: url is not a valid address.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ImproperlyConfigured(f"{place}: url must be an address such as https://models.example.org/v1.")
    if parts.username or parts.password:
        raise ImproperlyConfigured(f"{place}: url must have no password; name the key by key_env or key_file.")
    return str(url).rstrip("/")
