"""Judges of a project: the configured endpoints, prompt templates, what people were asked, and stored answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from django.conf import settings
from django.db.models import Avg, Sum, TextField
from django.db.models.functions import Cast
from django.utils.translation import gettext as _

from annotation.models import Aspect, Campaign, CampaignAspect
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput
from evalapp.names import natural_key

from ..models import JudgeAnswer, JudgeTemplate
from .aspects import find_campaign

if TYPE_CHECKING:
    from scoring.ml.judges import Answer, Judge, PromptTemplate, Request
    from scoring.ml.judges.endpoint import Endpoint
    from scoring.ml.judges.local import FolderFacts

#: Keys in a query; many builds of SQLite allow 32,766 parameters.
MOST_KEYS = 5_000
#: Stored answers that are read from the database together; each has lists of alternatives.
ROWS = 500
#: Estimates while an endpoint has answered nothing in the project.
CHARACTERS_PER_TOKEN, ANSWER_TOKENS, ANSWER_SECONDS = 4.0, 8, 1.0


# ---- endpoints --------------------------------------------------------------------------------------------------


def get_endpoint(name: str) -> Endpoint:
    """Return the endpoint of this name in JUDGE_ENDPOINTS. Raises `NotThere` with the known names."""
    from scoring.ml.judges.endpoint import Endpoint

    row = settings.JUDGE_ENDPOINTS.get(name)
    if row is None:
        known = ", ".join(settings.JUDGE_ENDPOINTS)
        if not known:
            text = _("This installation has no endpoints for judges. Its administrator sets JUDGE_ENDPOINTS.")
            raise BadInput.for_field("endpoint", text)
        text = _("There is no endpoint “%(name)s”. There are: %(known)s.")
        raise BadInput.for_field("endpoint", text % {"name": name, "known": known})
    return Endpoint(
        name=name, url=row["url"], models=tuple(row["models"]), at_once=row["at_once"], price_in=row["price_in"],
        price_out=row["price_out"], timeout=row["timeout"], has_logprobs=row["logprobs"], key=make_key_reader(name),
        folder=row["folder"], dtype=row["dtype"], device=row["device"], batch_tokens=row["batch_tokens"] or None,
    )  # fmt: skip


def make_key_reader(name: str) -> Callable[[], str]:
    """Return a function that reads the key of an endpoint from its variable or file. It raises `BadInput` if that is
    missing; its messages name the place, never the content."""

    def read_key() -> str:
        row = settings.JUDGE_ENDPOINTS[name]
        text = ""
        if row["key_env"]:
            key = os.environ.get(row["key_env"], "").strip()
            text = "" if key else _("the variable %(place)s is not set") % {"place": row["key_env"]}
        elif row["key_file"]:
            try:
                key = Path(row["key_file"]).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError):
                key = ""
            text = "" if key else _("the file %(place)s cannot be read or is empty") % {"place": row["key_file"]}
        else:
            return ""
        # A line break would end the header.
        if text or not key.isascii() or not key.isprintable():
            text = text or _("the key is not a single line of plain characters")
            raise BadInput(_("The endpoint %(name)s has no key: %(why)s.") % {"name": name, "why": text})
        return key

    return read_key


def read_model_facts(endpoint: Endpoint) -> FolderFacts | None:
    """Return kind and special tokens of a model in a folder, None for a server. Raises `BadInput` if it is no judge."""
    if not endpoint.folder:
        return None
    from scoring.ml.judges.endpoint import EndpointError
    from scoring.ml.judges.local import read_facts

    try:
        return read_facts(endpoint)
    except EndpointError as error:
        raise BadInput.for_field("endpoint", str(error)) from error


def refuse_leaving(project: Project, endpoint: Endpoint) -> None:
    """Raise `BadInput` unless texts of the project may leave this installation, or the model is in a folder of it."""
    if not endpoint.folder and not Project.objects.filter(pk=project.pk, texts_may_leave=True).exists():
        text = _(
            "Texts of %(project)s may not leave this installation. An owner of the project can allow it in its "
            "settings."
        )
        raise BadInput(text % {"project": project.slug})


# ---- templates and rubric ---------------------------------------------------------------------------------------


def list_templates(project: Project) -> list[PromptTemplate]:
    """Return the built-in templates and the last version of each of the project's own, as `name@version`."""
    from scoring.ml.judges import TEMPLATES, PromptTemplate

    newest: dict[str, JudgeTemplate] = {}
    for row in JudgeTemplate.objects.filter(project=project).order_by("version"):
        newest[row.name] = row
    rows = [newest[name] for name in sorted(newest, key=natural_key)]
    own = [PromptTemplate(str(row), row.kind, row.text) for row in rows]
    return [*TEMPLATES.values(), *own]


def get_template(project: Project, name: str) -> PromptTemplate:
    """Return a template by name, for the last version, or `name@version`."""
    from scoring.ml.judges import TEMPLATES, PromptTemplate

    if name in TEMPLATES:
        return TEMPLATES[name]
    bare, _at, version = name.partition("@")
    rows = JudgeTemplate.objects.filter(project=project, name=bare).order_by("-version")
    if version:
        rows = rows.filter(version=int(version) if version.isdecimal() and len(version) < 9 else 0)
    row = rows.first()
    if row is None:
        known = ", ".join(template.name for template in list_templates(project))
        text = _("There is no template “%(name)s”. There are: %(known)s.")
        raise BadInput.for_field("template", text % {"name": name, "known": known})
    return PromptTemplate(str(row), row.kind, row.text)


def read_rubric(project: Project, aspect: Aspect, campaign: str, *, is_pairwise: bool) -> dict[str, Any]:
    """Return question, scale, labels and guidelines as people got them: from the named campaign, or the newest one
    that asks for this aspect in this way, or else from the aspect's name and scale."""
    kind = Campaign.Kind.PAIRWISE if is_pairwise else Campaign.Kind.LIKERT
    asked = CampaignAspect.objects.filter(campaign__project=project, aspect=aspect, campaign__kind=kind)
    named = find_campaign(project, campaign)
    row = (asked.filter(campaign=named) if named else asked).select_related("campaign").order_by("-campaign").first()
    if named is not None and row is None:
        text = _("The campaign %(campaign)s does not ask for %(aspect)s in this way.")
        raise BadInput.for_field("campaign", text % {"campaign": campaign, "aspect": aspect.name})
    low, high, step = (aspect.low, aspect.high, 1.0) if row is None else (row.low, row.high, row.step)
    if is_pairwise:
        low, high, step = 0.0, 1.0, 1.0
    if low is None or high is None:
        text = _("%(aspect)s has no scale. Name a campaign that rates it, or compare pairs of texts.")
        raise BadInput.for_field("aspect", text % {"aspect": aspect.name})
    if step is not None and not (low + step) <= high:
        step = None  # a scale such as 0 to 0.5
    question = row.question if row is not None and row.question else ""
    default = _("Which text is better in terms of %(aspect)s?") if is_pairwise else _("How good is the %(aspect)s?")
    return {
        "campaign": "" if row is None else row.campaign.slug,
        "question": question or default % {"aspect": aspect.name},
        "low": low, "high": high, "step": step,
        "labels": {} if row is None or is_pairwise else {str(key): str(text) for key, text in row.labels.items()},
        "guidelines": "" if row is None else row.campaign.guidelines,
    }  # fmt: skip


def make_judge(options: Mapping[str, Any], examples: Sequence[Mapping[str, Any]] = ()) -> Judge:
    """Return the judge with stored options and examples. Raises `BadInput` if they do not fit together."""
    from scoring.ml.judges import Example, RubricError
    from scoring.ml.judges.reader import read_judge
    from scoring.ml.types import Record

    shown = [
        Example(Record(row["text"], context=tuple(row["context"]), source=row["source"]), row["answer"])
        for row in examples
    ]
    try:
        return read_judge(options, shown)
    except RubricError as error:
        raise BadInput(str(error)) from error


# ---- stored answers ---------------------------------------------------------------------------------------------


def split_keys(keys: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield the keys in parts of a size that one query allows."""
    for start in range(0, len(keys), MOST_KEYS):
        yield keys[start : start + MOST_KEYS]


def find_model(project: Project, endpoint: str, requests: Iterable[Request]) -> str:
    """Return the model id that the server reported with the newest answer to one of the requests, "" without one."""
    rows = JudgeAnswer.objects.filter(project=project, endpoint=endpoint).order_by("-pk")
    newest = (0, "")
    for digests in split_keys([request.digest for request in requests]):
        newest = max(newest, rows.filter(digest__in=digests).values_list("pk", "model").first() or newest)
    return newest[1]


def load_answers(
    project: Project, endpoint: str, model: str, requests: Sequence[Request]
) -> dict[tuple[str, int], Answer]:
    """Return the stored answers to the requests by digest and repeat."""
    from scoring.ml.judges import Answer

    wanted = {(request.digest, request.repeat) for request in requests}
    digests = sorted({digest for digest, _repeat in wanted})
    result: dict[tuple[str, int], Answer] = {}
    rows = JudgeAnswer.objects.filter(project=project, endpoint=endpoint, model=model)
    for keys in split_keys(digests):
        # As text, because orjson reads it in a third of the time.
        part = rows.filter(digest__in=keys).values_list("digest", "repeat", Cast("answer", TextField()))
        for digest, repeat, answer in part.iterator(ROWS):
            if (digest, repeat) in wanted:
                result[digest, repeat] = Answer.from_json(orjson.loads(answer), model)
    return result


def measure_answers(project: Project, endpoint: str) -> dict[str, float]:
    """Return mean characters per prompt token, tokens per answer and seconds per answer, from stored answers."""
    rows = JudgeAnswer.objects.filter(project=project, endpoint=endpoint, prompt_tokens__gt=0, characters__gt=0)
    facts = rows.aggregate(
        characters=Sum("characters"), tokens=Sum("prompt_tokens"), answer=Avg("completion_tokens"),
        seconds=Avg("seconds"),
    )  # fmt: skip
    return {
        "characters_per_token": facts["characters"] / facts["tokens"] if facts["tokens"] else CHARACTERS_PER_TOKEN,
        "answer_tokens": facts["answer"] or ANSWER_TOKENS,
        "answer_seconds": facts["seconds"] or ANSWER_SECONDS,
    }
