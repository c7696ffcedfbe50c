"""Warn before scoring if the encoder of an evaluator does not know the language of a project."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from annotation.models import Output
from evalapp.accounts.models import Project

from ..models import Evaluator
from .training import artefact_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scoring.ml import Entry

#: Number of outputs checked.
SAMPLE = 200
#: Minimum shares of texts with no and with only some known words for a warning; emoji count as words.
UNREADABLE, PARTLY = 0.05, 0.5


def warn_unreadable(
    project: Project, entry: Entry, options: Mapping[str, Any], trained: Evaluator | None = None
) -> str:
    """Return a warning if the encoder does not know the words of many texts, else "". Also "" without an encoder, and
    if its tokenizer cannot be read."""
    from scoring.ml.encoders.unknown import Coverage, UnknownTokens
    from scoring.ml.errors import ScoringError

    try:
        result = _tokenizer_folder(entry, options, trained)
        reader = None if result is None else UnknownTokens.from_folder(*result)
    except (OSError, ValueError, ScoringError):
        return ""  # the run that needs the encoder reports the error
    if result is None or reader is None:
        return ""
    texts = [
        text
        for text in Output.objects.filter(project=project).order_by("pk").values_list("text", flat=True)[:SAMPLE]
        if text.strip()
    ]
    known = reader.look(texts)
    counts = Counter(known[text] for text in texts)
    n_unreadable, n_partly = counts[Coverage.NONE], counts[Coverage.SOME]
    if n_unreadable < UNREADABLE * len(texts) and n_partly < PARTLY * len(texts):
        return ""
    text = _(
        "Of %(all)d texts checked, the encoder %(encoder)s knows no word of %(none)d and only some words of %(some)d. "
        "The first get no score, and in the others all unknown words are equal. Choose an encoder for the language "
        "of this project (%(lang)s)."
    )
    counted = {"all": len(texts), "none": n_unreadable, "some": n_partly}
    return text % {**counted, "encoder": result[0], "lang": project.lang or _("not set")}


def _tokenizer_folder(entry: Entry, options: Mapping[str, Any], trained: Evaluator | None) -> tuple[str, Path] | None:
    """Return the name of the encoder and the folder of its tokenizer, None without an encoder."""
    from scoring.ml.encoders.source import DEFAULT_ENCODER, find_encoder_folder

    if trained is None:
        names_encoder = any(option.name == "encoder" for option in entry.options)
        given = options.get("encoder")
        if not names_encoder or (given is None and "encoder" not in entry.needs):
            return None
        name = DEFAULT_ENCODER if given is None else str(given)
        return Path(name).name, find_encoder_folder(name)
    folder = artefact_folder(trained)
    if (folder / "fold-0").is_dir():  # all folds use the same encoder
        folder = folder / "fold-0"
    encoder = json.loads((folder / "evaluator.json").read_text(encoding="utf-8")).get("encoder")
    if encoder is None:
        return None
    return Path(encoder["name"]).name, folder if encoder["embedded"] else find_encoder_folder(encoder["name"])
