"""Small files that unpack to huge sizes are refused by row or by size, in a process that stays small."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.annotation.pipelines import bombs

#: FAULTS D2 asks for less than 600 MB. SQLite maps up to 128 MB of its file, which count as well.
MOST_MB = 400
#: The message of each, and how many rows are invalid.
SAID = {
    "dictionary": "outputs.parquet:1: The row is 10,000,003 bytes long; the maximum is 1,024,000.",
    "many_allowed": "The file unpacks to more than",
    "nested": "items.parquet:1: The row is 50,004,002 bytes long",
    "long_string": "The file unpacks to more than",
    "huge_count": "The rows after row 0 unpack to more than 320 MB at once.",
    "wide": "The file has more than 1,000 columns.",
    "gzip_line": "items.jsonl.gz:1: The row is longer than 1,024,000 bytes.",
    "gzip_field": "a quote was opened and not closed",
    "long_rows": "Nothing to do: all rows are already stored in p-long-rows.",
    "document": "The file has more than 2,000,000 values.",
    "filters": "284 faults were found; nothing was stored.",
    "doubled_keys": "More than a thousand rows up to here have duplicate keys.",
    "long_names": "800 faults were found; nothing was stored.",
}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="/proc says how much memory a process had")
def test_no_file_makes_the_process_large(tmp_path: Path, migrated_file: Path) -> None:
    bombs.make_all(tmp_path / "bombs")
    (tmp_path / "data").mkdir()
    shutil.copy(migrated_file, tmp_path / "data" / "evalapp.sqlite3")
    process = subprocess.run(
        [sys.executable, bombs.__file__, str(tmp_path / "bombs")],
        env={**os.environ, "EVALAPP_DATA": str(tmp_path / "data"), "DATABASE_URL": ""},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr[-3000:]
    found = {line["bomb"]: line for line in map(json.loads, process.stdout.splitlines())}
    assert set(found) == set(SAID) == set(bombs.BOMBS)
    for name, words in SAID.items():
        assert words in found[name]["said"], found[name]["said"]
        assert found[name]["stored"] == (2 if name == "long_rows" else 0)
        assert "Traceback" not in found[name]["said"]
    assert max(line["own_mb"] for line in found.values()) < MOST_MB
    # The process that reads Parquet files: its libraries, and its memory allowance.
    assert max(line["child_mb"] for line in found.values()) < MOST_MB
