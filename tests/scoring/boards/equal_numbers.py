"""Compute every board of the development sets through the product's outer faces, for a comparison of two versions.

    python tests/scoring/boards/equal_numbers.py write FOLDER_OF_SETS before.json     (in the checkout of each version)
    python tests/scoring/boards/equal_numbers.py compare before.json after.json

Each set is cut to a few items and loaded with `manage.py load`. Boards are asked for by command, their files by the
address of the page; the project is then exported and recomputed from the folder. Figures keep all digits.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ITEMS, MOST = 40, 1500
EVALUATORS = ("length", "random", "overlap", "bleu-1", "token-f1")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
#: Parts that differ between runs of the same version.
TIMES = frozenset({"computed_at", "scored_at", "score_set", "is_current", "seconds", "stamp", "versions"})
Row = dict[str, Any]


def read_rows(folder: Path, table: str) -> list[Row]:
    for name, opener in ((f"{table}.jsonl", open), (f"{table}.jsonl.gz", gzip.open)):
        if (folder / name).exists():
            with opener(folder / name, "rt", encoding="utf-8") as file:  # type: ignore[operator]
                return [json.loads(line) for line in file]
    return []


def cut(source: Path, target: Path) -> dict[str, Any]:
    """Write a few items of a set, with a second reference set, judgements against references and rated dialogues made
    from its ratings; returns the aspects that were rated and compared."""
    outputs, ratings, comparisons = (read_rows(source, name) for name in ("outputs", "ratings", "comparisons"))
    used = list(dict.fromkeys(row["item"] for row in (*ratings, *comparisons)))[:ITEMS]
    items = [row for row in read_rows(source, "items") if row["id"] in set(used)]
    known = {row["id"] for row in items}
    ratings = [row for row in ratings if row["item"] in known]
    rated = list(dict.fromkeys(row["aspect"] for row in ratings))[:2]
    ratings = [row for row in ratings if row["aspect"] in rated][:MOST]
    comparisons = [row for row in comparisons if row["item"] in known]
    compared = list(dict.fromkeys(row["aspect"] for row in comparisons))[:1]
    comparisons = [row for row in comparisons if row["aspect"] in compared][:MOST]
    with_references = {row["id"] for row in items if row["references"]}
    if rated and with_references:
        middle = sorted(row["value"] for row in ratings)[len(ratings) // 2]
        comparisons += [
            {"item": row["item"], "system_a": row["system"], "system_b": {"reference": 0}, "rater": row["rater"],
             "aspect": row["aspect"], "verdict": "a" if row["value"] > middle else "tie" if k % 3 else "b"}
            for k, row in enumerate(ratings) if row["item"] in with_references and row["aspect"] == rated[0]
        ][:MOST // 3]  # fmt: skip
    dialogues = [{"id": row["group"] or row["id"], "turns": ["a", "b"]} for row in items[:12]] if rated else []
    dialogues = list({row["id"]: row for row in dialogues}.values())
    first = [row["value"] for row in ratings if row["aspect"] == rated[0]] if rated else []
    spoken = [
        {
            "dialogue": row["id"],
            "rater": f"d{rater}",
            "aspect": rated[0],
            "value": first[(7 * k + 3 * rater) % len(first)],
        }
        for k, row in enumerate(dialogues)
        for rater in range(3)
    ]
    for k, row in enumerate(items):
        row["meta"] = {**(row.get("meta") or {}), "half": "ab"[k % 2]}
    tables = {
        "items": items, "outputs": [row for row in outputs if row["item"] in known], "ratings": [*ratings, *spoken],
        "comparisons": comparisons, "dialogues": dialogues,
        "references": [{"set": "first", "item": row["id"], "position": 0, "text": row["references"][0]}
                       for row in items if row["references"]],
    }  # fmt: skip
    target.mkdir()
    document = json.loads((source / "dataset.json").read_text(encoding="utf-8"))
    (target / "dataset.json").write_text(json.dumps(document), encoding="utf-8")
    for name, rows in tables.items():
        if rows:
            (target / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return {
        "rated": rated, "compared": compared, "turing": rated[:1] if with_references and rated else [],
        "references": bool(with_references), "dialogues": bool(dialogues),
    }  # fmt: skip


def boards(found: dict[str, Any]) -> Iterator[tuple[list[str], str]]:
    """Arguments of a command (after its slug), and the address of its files below the project."""
    yield ["agreement"], "agreement/table.{}?"
    for number, aspect in enumerate(found["rated"]):
        yield ["agreement", "--aspect", aspect], f"agreement/table.{{}}?aspect={aspect}&judged=ratings"
        for method in ("raw", "z", "rank")[: 3 if number == 0 else 1]:
            tail = f"table.{{}}?aspect={aspect}&ratings={method}"
            yield ["systems", "--aspect", aspect, "--ratings", method], f"systems/{tail}"
        yield ["meta", "--aspect", aspect], f"evaluation/table.{{}}?aspect={aspect}"
        if number:
            continue
        yield ["meta", "--aspect", aspect, "--grouping", "item", "--undefined", "zero", "--ratings", "z-shrunk"], ""
        for test in ("permutation", "bootstrap"):
            arguments = ["meta", "--aspect", aspect, "--level", "system", "--test", test, "--coefficient", "kendall"]
            yield arguments, f"evaluation/table.{{}}?aspect={aspect}&level=system&test={test}&coefficient=kendall"
        yield ["meta", "--aspect", aspect, "--test", "williams", "--evaluators", "length", "bleu-1"], ""
        yield ["meta", "--aspect", aspect, "--slices", "half"], f"evaluation/slices/table.{{}}?aspect={aspect}&key=half"
        if found["dialogues"]:
            yield (
                ["meta", "--aspect", aspect, "--level", "dialogue"],
                f"evaluation/table.{{}}?level=dialogue&aspect={aspect}",
            )
        if found["references"]:
            tail = f"table.{{}}?aspect={aspect}&references=first,original"
            yield ["meta", "--aspect", aspect, "--references", "original", "first"], f"references/enhanced/{tail}"
    if found["rated"]:
        yield ["meta", "--aspects"], "evaluation/aspects/table.{}?"
    yield ["meta", "--matrix"], "evaluation/matrix/table.{}?"
    yield ["meta", "--matrix", "--coefficient", "spearman", "--level", "system", "--systems", "machine"], ""
    yield ["systems", "--by", "length"], "systems/table.{}?by=length"
    for aspect in found["compared"]:
        methods = (("win-rate", "none"), ("davidson", "none"), ("bradley-terry", "length+rater"), ("glicko2", "none"))
        for method, covariates in methods:
            arguments = ["systems", "--aspect", aspect, "--method", method, "--covariates", covariates]
            yield arguments, f"systems/table.{{}}?aspect={aspect}&method={method}&covariates={covariates}"
        yield ["meta", "--aspect", aspect, "--pairs"], f"evaluation/pairs/table.{{}}?aspect={aspect}"
        yield ["meta", "--aspect", aspect, "--pairs", "--test", "bootstrap", "--systems", "machine"], ""
        tail = f"?aspect={aspect}&people=davidson&level=system"
        yield ["meta", "--aspect", aspect, "--level", "system", "--people", "davidson"], f"evaluation/table.{{}}{tail}"
        yield ["agreement", "--aspect", aspect, "--judged", "comparisons"], ""
    for aspect in found["turing"]:
        for per in ("judgement", "output"):
            tail = f"?aspect={aspect}&method=m1&per={per}"
            yield ["systems", "--aspect", aspect, "--method", "m1", "--per", per], f"systems/table.{{}}{tail}"
        yield ["meta", "--aspect", aspect, "--level", "system", "--people", "m1"], ""


def bare(value: Any) -> Any:
    """The document without parts that differ between runs of the same version."""
    if isinstance(value, dict):
        return {name: bare(part) for name, part in value.items() if name not in TIMES}
    return [bare(part) for part in value] if isinstance(value, list) else value


def compute(sets: Path, only: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as data:
        os.environ.update(EVALAPP_DATA=data, DJANGO_SETTINGS_MODULE="evalapp.settings", DEBUG="true")
        sys.path.insert(0, str(Path.cwd()))
        import django

        django.setup()
        from django.contrib.auth import get_user_model
        from django.core.management import call_command
        from django.test import Client

        call_command("migrate", verbosity=0)
        user = get_user_model().objects.create_superuser(username="eva", password="-")
        client = Client(headers={"host": "localhost"})
        client.force_login(user)
        results: dict[str, Any] = {}
        for source in sorted(path for path in sets.iterdir() if (path / "dataset.json").exists()):
            if only and source.name not in only:
                continue
            began = time.monotonic()
            folder, slug = Path(data) / f"cut-{source.name}", source.name.replace("_", "-")
            found = cut(source, folder)
            if not (folder / "outputs.jsonl").exists():
                results[source.name] = {}
                continue
            results[source.name] = compute_set(call_command, client, folder, slug, found)
            print(source.name, len(results[source.name]), f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    return results


def compute_set(call_command: Any, client: Any, folder: Path, slug: str, found: dict[str, Any]) -> dict[str, Any]:
    def command(name: str, *arguments: str, as_json: bool = True) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            call_command(name, *arguments, *(["--json"] if as_json else []), stdout=out)
        return out.getvalue()

    command("load", str(folder), "--project", slug, "--owner", "eva")
    for evaluator in EVALUATORS:
        if found["references"] or evaluator in ("length", "random", "overlap"):
            command("score", evaluator, "--project", slug, "--here")
        if found["references"] and evaluator in ("bleu-1", "token-f1"):
            command("score", evaluator, "--project", slug, "--references", "first", "--here")
    results: dict[str, Any] = {}
    for (name, *arguments), address in boards(found):
        key = " ".join((name, *arguments))
        try:
            results[key] = {"json": bare(json.loads(command(name, slug, *arguments)))}
            results[key]["console"] = NUMBER.findall(command(name, slug, *arguments, as_json=False))
        except Exception as error:  # what is refused must be refused by both versions
            results[key] = {"refused": type(error).__name__}
            continue
        for ending in ("csv", "tex") if address else ():
            answer = client.get(f"/projects/{slug}/{address.format(ending)}")
            results[key][ending] = answer.content.decode() if answer.status_code == 200 else answer.status_code
    target = folder.with_name(f"export-{slug}")
    command("dump", slug, str(target))
    results["export"] = bare(json.loads((target / "leaderboard.json").read_text(encoding="utf-8")))
    program = [sys.executable, "-m", "evalapp.stats.recompute", str(target)]
    run = subprocess.run([*program, "--json"], capture_output=True, text=True, check=False)
    results["recompute"] = bare(json.loads(run.stdout)) if run.stdout else run.stderr
    run = subprocess.run(program, capture_output=True, text=True, check=False)
    results["recompute console"] = NUMBER.findall(run.stdout)
    return results


def differences(before: Any, after: Any, where: str = "") -> Iterator[str]:
    """Yield every place at which two results differ, to the last digit. Sentences are compared by their numbers."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            yield from differences(before.get(name), after.get(name), f"{where}/{name}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (one, two) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, two, f"{where}[{place}]")
    elif isinstance(before, str) and isinstance(after, str) and " " in before:
        if NUMBER.findall(before) != NUMBER.findall(after):
            yield f"{where}: {before[:200]} -> {after[:200]}"
    elif before != after:
        yield f"{where}: {str(before)[:200]} -> {str(after)[:200]}"


def count_numbers(value: Any) -> int:
    if isinstance(value, dict | list):
        return sum(map(count_numbers, value.values() if isinstance(value, dict) else value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))


def main() -> int:
    if len(sys.argv) < 4 or sys.argv[1] not in ("write", "compare"):
        print(__doc__)
        return 2
    if sys.argv[1] == "write":
        results = compute(Path(sys.argv[2]), sys.argv[4:])
        Path(sys.argv[3]).write_text(json.dumps(results, sort_keys=True), encoding="utf-8")
        return 0
    before, after = (json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[2:4])
    found = list(differences(before, after))
    for line in found[:60]:
        print(line)
    print(f"{len(before)} sets, {count_numbers(before):,} numbers: {len(found):,} differences")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
