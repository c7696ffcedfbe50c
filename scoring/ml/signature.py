"""Signatures of scores in the manner of sacrebleu: everything that changes a number, in one line.

`bleu-star|nrefs:var|case:mixed|eff:yes|tok:13a|smooth:exp|v:1`. Two scores may be compared when their signatures are
equal. `v` is the revision of the evaluator's definition (docs/decisions/revisions-in-signatures.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalapp import __version__

#: The version of the product, stored with artefacts and training records.
VERSION = __version__


@dataclass(frozen=True, slots=True)
class SignatureField:
    """One part of a signature: its key, its abbreviation, its value."""

    key: str
    short: str
    value: str


def render(name: str, fields: Sequence[SignatureField], revision: int, *, short: bool = False) -> str:
    """Return the signature of the evaluator `name`: its `fields`, with `short` under abbreviated keys, then its
    `revision`.

    >>> render("length", [SignatureField("tok", "t", "words")], 1)
    'length|tok:words|v:1'
    """
    parts = [name, *(f"{field.short if short else field.key}:{field.value}" for field in fields)]
    return "|".join([*parts, f"v:{revision}"])


def yes_no(value: bool, *, short: bool = False) -> str:
    """Return a switch `value` as it is written in a signature: yes or no, with `short` only the first letter."""
    word = "yes" if value else "no"
    return word[0] if short else word


def text_hash(texts: Iterable[str], length: int = 8) -> str:
    """Return a hash of an ordered list of `texts`, `length` hexadecimal digits long."""
    digest = hashlib.sha256()
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()[:length]


def file_hash(path: Path) -> str:
    """Return the sha256 of the bytes of the file at `path`, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
