"""Several evaluators combined into one with a name and a row of its own: asking for it, and storing what a run found.

The arithmetic is `evalapp.stats.correlation.combining`; reading the parts' scores is the pipeline's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db import transaction

from annotation.models.data import ORIGINAL
from annotation.selectors.filters import get_active_filter
from annotation.services.bulk import insert_rows
from evalapp.accounts.models import Project
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict, EvalappError, Fault
from evalapp.common.models import Run
from evalapp.common.params import param, seed_param, value_faults
from evalapp.common.queue import enqueue_run
from scoring.boards.choices import RATINGS

from ..models import Evaluator, Score, ScoreSet
from ..selectors.aspects import choose_aspect
from ..selectors.score_sets import current_sets, deleted_among, words_of_deleted
from .scores import COLUMNS, NewScore, score_row
from .training import free_slug, naming

NAME = "combined"
#: Closes the signature of a combination, as `Entry.revision` does for other evaluators.
REVISION = 1
METHODS = {
    "mean-z": "Mean of z-scores",
    "stacked": "Stacked: ridge regression on people’s ratings of a part of the groups",
}
MOST_PARTS = 50
SIGNATURE = 500


@dataclass(frozen=True)
class CombineWishes:
    """Which evaluators are combined, and how. A stacked combination learns from human ratings."""

    parts: tuple[str, ...] = param(
        help="Evaluators that have scores.", low=2, high=MOST_PARTS, needed="Name the evaluators to be combined."
    )
    method: str = param("mean-z", help="Mean of z-scores, or ridge regression on human ratings.", choices=METHODS)
    name: str = param("", help="Name of the combination; empty: the next free `combined-N`.")
    aspect: str = param("", help="Stacked: the aspect whose ratings are learned.")
    references: str = param(ORIGINAL, help="The reference set of the scores.")
    ratings: str = param("raw", help="Stacked: how raters are made comparable.", choices=RATINGS)
    filter: str = param("", help="Stacked: a named filter of raters, who are left out.")
    share: float = param(0.5, help="Stacked: the share of the groups that is learned from.", low=0.1, high=0.9)
    seed: int = seed_param()


def start_combination(*, project: Project, user: Any = None, wishes: CombineWishes, send: bool = True) -> Run:
    """Queue the combination under a name that is free. The same request joins the run that is already there."""
    params = _checked(project, wishes)
    with naming(project):
        for run in Run.objects.filter(project=project, kind="combine", state__in=Run.ACTIVE, cancel_requested=False):
            asked = {key: value for key, value in run.params.items() if key != "slug"}
            if asked == params and wishes.name in ("", run.params["slug"]):
                return run
        slug = free_slug(project, NAME, wishes.name)
        return _enqueue(project, user, {**params, "slug": slug}, send=send)


def combine_again(*, project: Project, user: Any = None, evaluator: Evaluator, send: bool = True) -> Run:
    """The same combination of what its parts say now. Raises `BadInput` where one of them was deleted."""
    refuse_deleted(project, evaluator.slug, evaluator.options["parts"])
    wishes = CombineWishes(**{**evaluator.options, "parts": tuple(evaluator.options["parts"])})
    return _enqueue(project, user, {**_checked(project, wishes), "slug": evaluator.slug}, send=send)


def refuse_deleted(project: Project, slug: str, parts: Sequence[str]) -> None:
    """Raises `BadInput` with the way out where a part of the combination `slug` is no more."""
    deleted = deleted_among(project, parts)
    if deleted:
        gone = [part for part in parts if part in deleted]
        text = f"{slug} cannot be combined again: {words_of_deleted(gone)}. Combine others under a new name, or delete "
        raise BadInput(f"{text}{slug}; until then the scores that it has stay.")


def _enqueue(project: Project, user: Any, params: dict[str, Any], *, send: bool) -> Run:
    title = f"Combine {', '.join(params['parts'])} into {params['slug']}"
    return enqueue_run(kind="combine", project=project, user=user, params=params, title=title, send=send)


def _checked(project: Project, wishes: CombineWishes) -> dict[str, Any]:
    """The parameters of the run. Every wish that cannot be met is a fault with its field."""
    faults: list[Fault] = []
    parts = list(dict.fromkeys(wishes.parts))
    kinds = dict(Evaluator.objects.filter(project=project, slug__in=parts).values_list("slug", "kind"))
    sets = current_sets(project, wishes.references)
    scored = {s.evaluator.slug for s in sets}
    defined = {s.evaluator.slug for s in sets if not s.n_scores or s.n_undefined < s.n_scores}
    unknown = deleted_among(project, (part for part in parts if part not in scored))
    for part in parts:
        if kinds.get(part) == Evaluator.Kind.COMBINED:
            faults.append(Fault(f"{part} is a combination itself; name its parts.", field="parts"))
        elif part in unknown:
            faults.append(Fault(f"There is no evaluator {part} in {project.slug}.", field="parts"))
        elif part not in scored:
            way = f"manage.py score {part} --project {project.slug}"
            faults.append(Fault(f"{part} has no scores against “{wishes.references}”: {way}", field="parts"))
        elif part not in defined:
            text = f"{part} is undefined for every output here, and so would the combination be: leave it out."
            faults.append(Fault(text, field="parts"))
    faults += value_faults(wishes)
    params = {**asdict(wishes), "parts": parts}
    params.pop("name")
    if wishes.method == "stacked" or wishes.aspect:
        try:
            params["aspect"] = choose_aspect(project, wishes.aspect, judged_by="ratings").name
        except EvalappError as error:
            faults.append(Fault(error.detail, field="aspect"))
    if wishes.filter:
        try:
            get_active_filter(project, wishes.filter)
        except EvalappError as error:
            faults.append(Fault(error.detail, field="filter"))
    if faults:
        raise BadInput(" ".join(fault.message for fault in faults), faults=faults)
    return params


# ---- what is stored ---------------------------------------------------------------------------------------


def signature_of(params: Mapping[str, Any], parts: Sequence[ScoreSet]) -> tuple[str, str]:
    """The full and the short signature: method, settings, and each part by name and hash of its signature. Of very
    many parts the names of the first and one hash of all stand there."""

    def short(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    names = [f"{s.evaluator.slug}@{short(s.full_signature)}" for s in parts]
    rest = ""
    if params["method"] == "stacked":
        rest = f"|aspect:{params['aspect']}|ratings:{params['ratings']}|share:{params['share']:g}|seed:{params['seed']}"
        rest += f"|filter:{params['filter']}" if params.get("filter") else ""
    rest += f"|v:{REVISION}"
    head = f"{NAME}|method:{params['method']}"
    full = f"{head}|parts:{'+'.join(names)}{rest}"
    if len(full) > SIGNATURE:
        room = SIGNATURE - len(head) - len(rest) - 40
        shown: list[str] = []
        for name in names:
            if len("+".join([*shown, name])) > room:
                break
            shown.append(name)
        everything = short("+".join(names))
        full = f"{head}|parts:{'+'.join(shown)}+{len(names) - len(shown)}-more@{everything}{rest}"
    return full, f"{head}|parts:{len(names)}@{short('+'.join(names))}{rest}"[:300]


def store_combination(
    *,
    run: Run,
    slug: str,
    params: Mapping[str, Any],
    record: Mapping[str, Any],
    parts: Sequence[ScoreSet],
    scores: Iterable[NewScore],
) -> ScoreSet:
    """The evaluator and its set, all scores at once; a set of the same signature is replaced. The caller counts it
    afterwards with `finish_score_set`. Raises `Conflict` where the name has become another evaluator's."""
    signature, short = signature_of(params, parts)
    references = next((s.references for s in parts if s.references), "")
    with transaction.atomic():
        there = Evaluator.objects.filter(project=run.project, slug=slug).first()
        if there is not None and not (there.is_combined and there.options.items() <= dict(params).items()):
            text = f"The name “{slug}” was taken meanwhile by another evaluator. Combine these under another name, or "
            raise Conflict(text + "delete that one, then retry this run.")
        evaluator, made = Evaluator.objects.update_or_create(
            project=run.project,
            slug=slug,
            defaults={
                "name": NAME,
                "kind": Evaluator.Kind.COMBINED,
                "options": dict(params),
                "record": dict(record),
                "signature": signature,
                "run": run,
            },
        )
        score_set, _ = ScoreSet.objects.update_or_create(
            evaluator=evaluator,
            signature=signature,
            references=references,
            aspect="",
            defaults={"project": run.project, "short_signature": short, "run": run},
        )
        Score.objects.filter(score_set=score_set).delete()
        insert_rows(Score, COLUMNS, (score_row(score_set, row) for row in scores))
        if made:
            audit.record(verb="evaluator.combined", project=run.project, actor=run.created_by, object=evaluator)
    return score_set
