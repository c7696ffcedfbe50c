"""Which files of corpora belong into a backup: the pairs, not the indexes made of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalapp.common.backup.ports import Kept


def kept_files(apps: Any) -> Iterator[Kept]:
    parts = apps.get_model("retrieval", "CorpusPart").objects.order_by("pk")
    for pk, corpus, state in parts.values_list("pk", "corpus_id", "state").iterator():
        if state == "stored":
            yield Kept("corpora", f"{corpus}/part-{pk}.jsonl", needed=True)
        elif state == "waiting":
            yield Kept("corpora", f"{corpus}/received-{pk}")
