"""Fetch saved evaluators from the Hugging Face hub, and send them there.

Only the files of a saved evaluator are fetched, after their sizes were checked, and `load` runs no code from them:
weights are safetensors, everything else is JSON or text. The product forbids access (`evalapp.hub_access`); only its
command `hub` allows it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from evalapp.hub_access import is_hub_name, may_access
from scoring.ml.artefact import ALLOWED, CONFIG, ENCODER_FOLDER, TOKENIZER_FILES, find_size_limit
from scoring.ml.base import ARTIFACT
from scoring.ml.errors import HubError, need_package
from scoring.ml.signature import VERSION

if TYPE_CHECKING:
    from huggingface_hub import HfApi

README = "README.md"
#: The most that is fetched for one evaluator, in bytes.
MAX_BYTES = 10_000_000_000
#: Files of an evaluator, of its folds, and of an encoder that it brings along.
_ENCODER_FILES = (CONFIG, "model*.safetensors", "model.safetensors.index.json", *TOKENIZER_FILES)
_FILES = (
    *ALLOWED,
    README,
    *(f"fold-*/{name}" for name in ALLOWED),
    *(f"{ENCODER_FOLDER}/{name}" for name in _ENCODER_FILES),
)


def fetch(name: str, *, revision: str | None = None, max_bytes: int = MAX_BYTES, endpoint: str | None = None) -> Path:
    """Return the folder of the evaluator `name` ("organisation/model") in the local cache of the hub, downloaded if it
    is missing or has changed.

    `revision` is a branch, tag or commit. `max_bytes` limits the size of all files together. Without a connection the
    cached files are used. `endpoint` is the address of another hub. Raises `HubError` if there is no such evaluator, or
    if it is too large.
    """
    api = _open_api(name, endpoint)
    from huggingface_hub import errors, snapshot_download

    with _reported(name, api.endpoint):
        arguments: dict[str, Any] = {"revision": revision, "endpoint": api.endpoint, "allow_patterns": list(_FILES)}
        try:
            info = api.model_info(name, revision=revision, files_metadata=True)
        except errors.HfHubHTTPError:
            raise
        except _connection_errors():
            folder = Path(snapshot_download(name, local_files_only=True, **arguments))
            _check_files(name, {_place(path, folder): path.stat().st_size for path in _list_files(folder)}, max_bytes)
            return folder
        _check_files(name, {file.rfilename: file.size or 0 for file in info.siblings or ()}, max_bytes)
        folder = Path(snapshot_download(name, **arguments))
        if folder.name != info.sha:
            raise HubError(name, "it was changed while it was fetched: try again")
    return folder


class Portable(Protocol):
    """A trained evaluator: it can be saved with everything that another machine needs."""

    def save_pretrained(self, folder: str | Path, *, portable: bool = False) -> None: ...


def send_evaluator(
    evaluator: Portable, name: str, card: str, *, private: bool = True, message: str = "", endpoint: str | None = None
) -> str:
    """Save an `evaluator`, with `card` as README.md, send it to the hub as `name`, and return its address. Raises
    `HubError`."""
    _open_api(name, endpoint)  # fails before anything is written
    with TemporaryDirectory() as root:
        folder = Path(root) / "evaluator"
        evaluator.save_pretrained(folder, portable=True)
        (folder / README).write_text(card, encoding="utf-8")
        return send_folder(folder, name, private=private, message=message, endpoint=endpoint)


def send_folder(
    folder: Path, name: str, *, private: bool = True, message: str = "", endpoint: str | None = None
) -> str:
    """Send the saved evaluator in `folder` to the hub as the model `name`, which is created if it does not exist, and
    return its address.

    Files of an earlier evaluator under that name are replaced; the hub keeps them in its history. The account is that
    of `hf auth login` or of the environment variable HF_TOKEN. Raises `HubError`.
    """
    if not (folder / ARTIFACT).is_file():
        raise HubError(name, f"{folder} is not a saved evaluator: it has no {ARTIFACT}")
    api = _open_api(name, endpoint)
    with _reported(name, api.endpoint):
        api.create_repo(name, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=name,
            folder_path=folder,
            allow_patterns=list(_FILES),
            delete_patterns=list(_FILES),
            commit_message=message or f"Evaluator saved by evalapp {VERSION}",
        )
    return f"{api.endpoint}/{name}"


def _open_api(name: str, endpoint: str | None) -> HfApi:
    need_package("huggingface_hub", f"the model {name} of the hub")
    from huggingface_hub import HfApi

    if not is_hub_name(name):
        raise HubError(name, "a model on the hub is named organisation/model")
    if not may_access():
        raise HubError(name, "this program does not contact the hub: fetch it with `evalapp hub pull`, then upload it")
    return HfApi(endpoint=endpoint, library_name="evalapp", library_version=VERSION)


def _connection_errors() -> tuple[type[Exception], ...]:
    """Errors of a hub that cannot be reached: those of its HTTP library, and those of its offline mode."""
    from huggingface_hub.errors import HfHubHTTPError

    return (ConnectionError, HfHubHTTPError.__bases__[0])


@contextmanager
def _reported(name: str, endpoint: str) -> Iterator[None]:
    """Turn errors of the hub into a `HubError` with a way out."""
    from huggingface_hub import errors

    unusable: tuple[type[Exception], ...] = (errors.HFValidationError, *_connection_errors())
    try:
        yield
    except errors.RevisionNotFoundError as error:
        raise HubError(name, f"{endpoint} has no such revision of it: give a branch, tag or commit") from error
    except errors.RepositoryNotFoundError as error:
        message = f"{endpoint} has no such model, or you may not read it: check the name, or run: hf auth login"
        raise HubError(name, message) from error
    except errors.HfHubHTTPError as error:
        said = " ".join((error.server_message or str(error)).split())[:300]
        raise HubError(name, f"{endpoint} refused: {said}") from error
    except errors.LocalEntryNotFoundError as error:
        message = f"{endpoint} cannot be reached, and the model is not in the local cache: try again later"
        raise HubError(name, message) from error
    except unusable as error:
        raise HubError(name, f"{endpoint} cannot be used: {' '.join(str(error).split())[:300]}") from error


def _check_files(name: str, sizes: dict[str, int], max_bytes: int) -> None:
    """Raise `HubError` if the files, given with their sizes, are not those of an evaluator or are too large."""
    wanted = {file: size for file, size in sizes.items() if any(fnmatch(file, pattern) for pattern in _FILES)}
    if ARTIFACT not in wanted:
        raise HubError(name, f"is not a saved evaluator: it has no {ARTIFACT}. An encoder is fetched with: hf download")
    total = sum(wanted.values())
    if total > max_bytes:
        message = f"has {total / 1e9:,.1f} GB; the limit is {max_bytes / 1e9:,.1f} GB (max_bytes)"
        raise HubError(name, message)
    for file, size in wanted.items():
        limit = find_size_limit(file)
        if limit is not None and size > limit:
            raise HubError(name, f"{file} has {size / 1e6:,.0f} MB; the limit is {limit / 1e6:,.0f} MB")


def _list_files(folder: Path) -> Sequence[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _place(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()
