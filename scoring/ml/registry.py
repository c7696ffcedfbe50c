"""The catalogue of all evaluators, and `load`, which makes one from a name or a saved folder."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, cast

from evalapp.hub_access import is_hub_name
from scoring.ml.base import ARTIFACT, Evaluator
from scoring.ml.catalogue import Entry
from scoring.ml.errors import ArtefactError, NotTrained, ScoringError, UnknownEvaluator
from scoring.ml.evaluators.adem import entry as adem
from scoring.ml.evaluators.adversarial import entry as adversarial
from scoring.ml.evaluators.comparative import entry as comparative
from scoring.ml.evaluators.perception import entry as perception
from scoring.ml.evaluators.ream import entry as ream
from scoring.ml.evaluators.ridge import entry as ridge
from scoring.ml.evaluators.shared_bert import entry as shared_bert
from scoring.ml.evaluators.unreferenced import entry as unreferenced
from scoring.ml.metrics import build, list_metrics
from scoring.ml.plugins import Plugin, load_plugins
from scoring.ml.shipped import SHIPPED, find_shipped, list_shipped

#: Evaluators that learn, in the order of the catalogue.
LEARNED: tuple[Entry, ...] = tuple(
    entry
    for module in (comparative, ream, perception, shared_bert, unreferenced, ridge, adem, adversarial)
    for entry in module.ENTRIES
)

#: Names that other libraries use, in lower case without `-`, `_` and spaces, with the name here and its options.
ALIASES: dict[str, tuple[str, dict[str, Any]]] = {
    "bleu": ("bleu-corpus", {}),
    "sacrebleu": ("bleu-corpus", {}),
    "corpusbleu": ("bleu-corpus", {}),
    "sentencebleu": ("bleu-4", {}),
    "sentbleu": ("bleu-4", {}),
    "chrf2": ("chrf", {}),
    "chrf++": ("chrf", {"word_order": 2}),
    "chrf2++": ("chrf", {"word_order": 2}),
    "chrfpp": ("chrf", {"word_order": 2}),
    "rouge": ("rouge-l", {}),
    "f1": ("token-f1", {}),
    "ppl": ("perplexity", {}),
}


@cache
def catalogue() -> tuple[Entry, ...]:
    """Return all evaluators that can be loaded or trained by name: trivial baselines, metrics, learned evaluators, and
    those of plug-ins.

    >>> [entry.name for entry in catalogue() if entry.kind == "sentinel"]
    ['length', 'overlap', 'random']
    """
    return (*list_metrics(), *LEARNED, *(entry for plugin in list_plugins() for entry in plugin.entries))


def list_plugins() -> tuple[Plugin, ...]:
    """Return the plug-ins that are installed, also those that cannot be used."""
    return load_plugins(tuple(entry.name for entry in (*list_metrics(), *LEARNED)))


def get_entry(name: str) -> Entry:
    """Return the entry with this `name`. Raises `UnknownEvaluator` with similar names.

    >>> get_entry("chrf").scale
    (0.0, 100.0)
    """
    entries = {entry.name: entry for entry in catalogue()}
    if name not in entries:
        near = difflib.get_close_matches(name.lower(), [*entries, *ALIASES, *SHIPPED], n=3, cutoff=0.5)
        raise UnknownEvaluator(
            name, tuple(dict.fromkeys(ALIASES[each][0] if each in ALIASES else each for each in near))
        )
    return entries[name]


def resolve_alias(name: str) -> tuple[str, dict[str, Any]]:
    """Return the catalogue's name and the options of a metric that other libraries or papers write differently; an
    unknown `name` is returned as it is.

    >>> resolve_alias("BERTScore"), resolve_alias("chrF++")
    (('bertscore', {}), ('chrf', {'word_order': 2}))
    """
    bare = re.sub(r"[-_ ]", "", name).lower()
    if bare in ALIASES:
        return ALIASES[bare]
    return next(((entry.name, {}) for entry in catalogue() if entry.name.replace("-", "") == bare), (name, {}))


def load(name_or_folder: str | Path, *, verify: bool = True, revision: str | None = None, **options: Any) -> Evaluator:
    """Return an evaluator by its catalogue name or an alias (`bleu`, `chrF++`, `BERTScore`) with `options`, from a
    folder written by `save_pretrained`, from the Hugging Face hub under "organisation/model" (`name_or_folder`), or one
    that comes trained with the package: `load("maude-base")`.

    From the hub only files of an evaluator of limited size are fetched, once, and none of them is run; `revision` is a
    branch, tag or commit.

    Options given with a folder override the saved ones; `encoder` is the location of a trained evaluator's frozen
    encoder if that has moved (its weights must be the same). `verify` scores the fixtures of a trained evaluator again.
    Raises `UnknownEvaluator` (with similar names), `InvalidOption`, `NotTrained` for the name of a learned evaluator,
    `ArtefactError` for a folder that is damaged or scores differently than when it was saved, and `HubError` if it
    cannot be fetched.

    >>> from scoring.ml import Record
    >>> load("token-f1").score([Record("the cat", references=["the cat sat"])]).round(2).tolist()
    [0.8]
    """
    name = str(name_or_folder)
    folder = Path(name_or_folder)
    if isinstance(name_or_folder, str) and is_hub_name(name) and not folder.exists():
        from scoring.ml.hub import fetch

        folder = fetch(name, revision=revision)
    if name in SHIPPED and not (folder / ARTIFACT).is_file():
        folder = find_shipped(name)
        name = str(folder)
    artifact = folder / ARTIFACT
    if any(entry.name == name for entry in catalogue()) or not artifact.is_file():
        known, implied = resolve_alias(name)
        try:
            return build(get_entry(known), {**implied, **options})
        except NotTrained as error:
            raise NotTrained(known, list_shipped(known)) from error
    content = _read_artifact(artifact)
    try:
        entry = get_entry(str(content["evaluator"]))
    except UnknownEvaluator as error:
        message = f"needs the evaluator {error.name!r}, which is not installed; install the plug-in that brings it"
        raise ArtefactError(str(folder), message) from error
    with _fitting_together(folder, content):
        evaluator = _load_saved(entry, folder, content, options, verify=verify)
        # The score of a blank text may come from the state, which nothing has read yet.
        _ = evaluator.worst
    return evaluator


def from_pretrained(name_or_folder: str | Path, *, revision: str | None = None, **options: Any) -> Evaluator:
    """Return a saved evaluator from a folder or from the hub ("organisation/model"); otherwise as `load`.

    Unlike `load` it takes no name of the catalogue. Raises `ArtefactError` and `HubError`.
    """
    if Path(name_or_folder).exists() and not (Path(name_or_folder) / ARTIFACT).is_file():
        raise ArtefactError(str(name_or_folder), f"has no {ARTIFACT}: give a folder that save_pretrained wrote")
    if not Path(name_or_folder).exists() and not is_hub_name(str(name_or_folder)):
        message = "is neither a folder nor the name of a model on the hub, organisation/model"
        raise ArtefactError(str(name_or_folder), message)
    return load(name_or_folder, revision=revision, **options)


def _load_saved(
    entry: Entry, folder: Path, content: dict[str, Any], options: dict[str, Any], *, verify: bool
) -> Evaluator:
    if "folds" in content or entry.learns:
        own = {name: value for name, value in options.items() if name != "encoder"}
        encoder = None if options.get("encoder") is None else str(options["encoder"])
        kind = entry.load_cross_fitted() if "folds" in content else entry.load_implementation()
        return cast(Evaluator, kind.from_folder(entry, folder, own, verify=verify, encoder=encoder))
    if "options" not in content:
        message = f"{ARTIFACT} names the evaluator {entry.name}, which is never trained; save the evaluator again"
        raise ArtefactError(str(folder), message)
    evaluator = build(entry, {**content["options"], **options})
    saved = str(content["signature"])
    if not options and _unversioned(saved) != _unversioned(evaluator.signature):
        raise ScoringError(
            f"{folder} was saved as {saved} but would now score as {evaluator.signature}: its encoder "
            "has changed. Restore the old one, or save the evaluator again."
        )
    return evaluator


@contextmanager
def _fitting_together(folder: Path, content: dict[str, Any]) -> Iterator[None]:
    """Turn errors caused by files that are readable but do not belong together into an `ArtefactError`."""
    try:
        yield
    except ScoringError:
        raise
    except (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        lacking = "names no encoder and " if content.get("encoder", "") is None else ""
        said = f"{ARTIFACT} {lacking}does not fit the other files or its evaluator"
        what = f"{said} ({type(error).__name__}: {error})"
        raise ArtefactError(str(folder), f"{what}; copy the folder again, or save the evaluator again") from error


def _unversioned(signature: str) -> str:
    return signature.rpartition("|v:")[0]


def _read_artifact(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ScoringError(f"{path} is not a saved evaluator: {error!r}. Save it again.") from error
    trained = isinstance(content, dict) and (content.get("trained") or "folds" in content)
    wanted = ("evaluator",) if trained else ("evaluator", "options", "signature")
    if not isinstance(content, dict) or any(key not in content for key in wanted):
        raise ScoringError(f"{path} is not a saved evaluator: it lacks {', '.join(wanted)}. Save it again.")
    return content
