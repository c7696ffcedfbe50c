"""The files of corpora that belong to a backup: the pairs, but not the indexes, which can be rebuilt."""

from collections.abc import Iterator
from typing import Any

from evalapp.common.hooks import BackupFile


def list_backup_files(apps: Any) -> Iterator[BackupFile]:
    parts = apps.get_model("retrieval", "CorpusPart").objects.order_by("pk")
    for pk, corpus, state in parts.values_list("pk", "corpus_id", "state").iterator():
        if state == "stored":
            yield BackupFile("corpora", f"{corpus}/part-{pk}.jsonl", needed=True)
        elif state == "waiting":
            yield BackupFile("corpora", f"{corpus}/received-{pk}")
