"""Whether the encoder of an evaluator can read the texts of a project: known before anything is scored."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotation.models import Output
from evalapp.accounts.models import Project

from ..models import Evaluator
from .training import artefact_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scoring.ml import Entry

#: Outputs whose texts are looked at.
SAMPLE = 200
#: The least shares of texts without and with some known words of which people are warned: an emoji is a word, too.
UNREADABLE, PARTLY = 0.05, 0.5


def warn_unreadable(
    project: Project, entry: Entry, options: Mapping[str, Any], trained: Evaluator | None = None
) -> str:
    """What to say where the encoder does not know the words of many texts; "" where it knows them, where there is no
    encoder, and where its tokenizer cannot be read without loading it."""
    from scoring.ml.encoders.unknown import Known, UnknownTokens
    from scoring.ml.errors import ScoringError

    try:
        found = _tokenizer_folder(entry, options, trained)
        reader = None if found is None else UnknownTokens.from_folder(*found)
    except (OSError, ValueError, ScoringError):
        return ""  # the run that needs the encoder says what is wrong with it
    if found is None or reader is None:
        return ""
    texts = [
        text
        for text in Output.objects.filter(project=project).order_by("pk").values_list("text", flat=True)[:SAMPLE]
        if text.strip()
    ]
    known = reader.look(texts)
    counts = Counter(known[text] for text in texts)
    n_unreadable, n_partly = counts[Known.NONE], counts[Known.SOME]
    if n_unreadable < UNREADABLE * len(texts) and n_partly < PARTLY * len(texts):
        return ""
    return (
        f"The encoder {found[0]} knows no word of {n_unreadable:,} of the {len(texts):,} texts looked at and only some "
        f"words of {n_partly:,}: the first get no score, in the others unknown words are all the same to it. "
        f"Choose an encoder that reads the language of this project ({project.lang or 'not set'})."
    )


def _tokenizer_folder(entry: Entry, options: Mapping[str, Any], trained: Evaluator | None) -> tuple[str, Path] | None:
    """Name of the encoder and the folder of its tokenizer; None without an encoder."""
    from scoring.ml.encoders.source import DEFAULT_ENCODER, find_encoder_folder

    if trained is None:
        names_encoder = any(option.name == "encoder" for option in entry.options)
        given = options.get("encoder")
        if not names_encoder or (given is None and "encoder" not in entry.needs):
            return None
        name = DEFAULT_ENCODER if given is None else str(given)
        return Path(name).name, find_encoder_folder(name)
    folder = artefact_folder(trained)
    if (folder / "fold-0").is_dir():  # the models of all folds work on the same encoder
        folder = folder / "fold-0"
    said = json.loads((folder / "evaluator.json").read_text(encoding="utf-8")).get("encoder")
    if said is None:
        return None
    return Path(said["name"]).name, folder if said["embedded"] else find_encoder_folder(said["name"])
