"""Send a folder with an export to the Hugging Face hub as a dataset. Only programs and operators of commands do so:
the web application makes no request to a hub."""

from __future__ import annotations

from pathlib import Path

from evalapp.client.errors import ClientError, InvalidArgument, MissingFile, MissingPackage
from evalapp.hub_access import is_hub_name, may_access


class HubRefused(ClientError):
    """The hub cannot be reached or refuses the request."""


def push_dataset(
    folder: str | Path, name: str, *, private: bool = True, message: str = "", endpoint: str | None = None
) -> str:
    """Send an export in `folder` to the hub as the dataset `name` ("organisation/dataset"), which is created if it does
    not exist, and return its address. Its README.md is the dataset card.

    A new dataset is `private`. Files of an earlier export that are not in the folder are deleted; the hub keeps them in
    its history. `message` describes the change, `endpoint` is the address of another hub. The account is that of `hf
    auth login` or of the environment variable HF_TOKEN.

    Raises `InvalidArgument` for another form of name, `MissingFile` for a folder without README.md, and `HubRefused`.
    """
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError as error:
        raise MissingPackage("huggingface_hub", "push_dataset()") from error
    if not may_access():
        raise HubRefused("this program does not contact the hub: use `evalapp dump --push`, or the client")
    if not is_hub_name(name):
        raise InvalidArgument(f"a dataset on the hub is named organisation/dataset, not {name!r}")
    if not (Path(folder) / "README.md").is_file():
        raise MissingFile(f"{folder} has no README.md, as every export has: name the folder of an export")
    # Errors of the connection are those of the HTTP library of huggingface_hub.
    unreachable: tuple[type[Exception], ...] = (OSError, HfHubHTTPError.__bases__[0])
    api = HfApi(endpoint=endpoint, library_name="evalapp")
    try:
        api.create_repo(name, repo_type="dataset", private=private, exist_ok=True)
        api.upload_folder(
            repo_id=name, repo_type="dataset", folder_path=folder, delete_patterns="*",
            commit_message=message or "Export of evalapp",
        )  # fmt: skip
    except HfHubHTTPError as error:
        said = " ".join((error.server_message or str(error)).split())[:300]
        raise HubRefused(f"{api.endpoint} refused {name}: {said}. Log in with: hf auth login") from error
    except unreachable as error:
        raise HubRefused(f"{api.endpoint} cannot be reached: {' '.join(str(error).split())[:300]}") from error
    return f"{api.endpoint}/datasets/{name}"
