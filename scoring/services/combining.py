"""Start combinations of evaluators, and store them. The arithmetic is in `evalapp.stats.correlation.combining`; the
pipeline reads the scores of the parts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

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
#: Part of the signature, like `Entry.revision` of other evaluators.
REVISION = 1
METHODS = {
    "mean-z": gettext_lazy("Mean of z-scores"),
    "stacked": gettext_lazy("Stacked: ridge regression on human ratings of a share of the groups"),
}
MAX_PARTS = 50
SIGNATURE = 500


@dataclass(frozen=True)
class CombineOptions:
    """Options of a combination. A stacked combination learns from human ratings."""

    parts: tuple[str, ...] = param(
        help="Evaluators that have scores.",
        low=2,
        high=MAX_PARTS,
        needed=gettext_noop("Name the evaluators to combine."),
    )
    method: str = param("mean-z", help="Mean of z-scores, or ridge regression on human ratings.", choices=METHODS)
    name: str = param("", help="Name of the combination; empty: the next free `combined-N`.")
    aspect: str = param("", help="Stacked: the aspect whose ratings are learned.")
    references: str = param(ORIGINAL, help="The reference set of the scores.")
    ratings: str = param("raw", help="Stacked: how raters are made comparable.", choices=RATINGS)
    filter: str = param("", help="Stacked: a named filter of raters, who are left out.")
    share: float = param(0.5, help="Stacked: the share of the groups that is learned from.", low=0.1, high=0.9)
    seed: int = seed_param()


def start_combination(*, project: Project, user: Any = None, options: CombineOptions, send: bool = True) -> Run:
    """Queue the combination under a free name, or return the active run of the same request."""
    params = _check_options(project, options)
    with naming(project):
        for run in Run.objects.filter(project=project, kind="combine", state__in=Run.ACTIVE, cancel_requested=False):
            asked = {key: value for key, value in run.params.items() if key != "slug"}
            if asked == params and options.name in ("", run.params["slug"]):
                return run
        slug = free_slug(project, NAME, options.name)
        return _enqueue(project, user, {**params, "slug": slug}, send=send)


def combine_again(*, project: Project, user: Any = None, evaluator: Evaluator, send: bool = True) -> Run:
    """Queue the same combination of the current scores. Raises `BadInput` if a part was deleted."""
    refuse_deleted(project, evaluator.slug, evaluator.options["parts"])
    options = CombineOptions(**{**evaluator.options, "parts": tuple(evaluator.options["parts"])})
    return _enqueue(project, user, {**_check_options(project, options), "slug": evaluator.slug}, send=send)


def refuse_deleted(project: Project, slug: str, parts: Sequence[str]) -> None:
    """Raise `BadInput` if a part of the combination `slug` was deleted."""
    if deleted := deleted_among(project, parts):
        text = _(
            "%(name)s cannot be combined again: %(reason)s. It keeps its scores. Combine other evaluators under a new "
            "name, or delete %(name)s."
        )
        reason = words_of_deleted([part for part in parts if part in deleted])
        raise BadInput(text % {"name": slug, "reason": reason})


def _enqueue(project: Project, user: Any, params: dict[str, Any], *, send: bool) -> Run:
    names = {"parts": ", ".join(params["parts"]), "name": params["slug"]}
    title = gettext_noop("Combine %(parts)s into %(name)s") % names
    return enqueue_run(kind="combine", project=project, user=user, params=params, title=title, send=send)


def _check_options(project: Project, options: CombineOptions) -> dict[str, Any]:
    """Return the parameters of the run. Raises `BadInput` with a fault for each invalid option."""
    parts = list(dict.fromkeys(options.parts))
    faults = [*_find_unusable(project, parts, options.references), *value_faults(options)]
    params = {**asdict(options), "parts": parts}
    params.pop("name")
    if options.method == "stacked" or options.aspect:
        try:
            params["aspect"] = choose_aspect(project, options.aspect, judged_by="ratings").name
        except EvalappError as error:
            faults.append(Fault(error.detail, field="aspect"))
    if options.filter:
        try:
            get_active_filter(project, options.filter)
        except EvalappError as error:
            faults.append(Fault(error.detail, field="filter"))
    if faults:
        raise BadInput.from_faults(faults)
    return params


def _find_unusable(project: Project, parts: Sequence[str], references: str) -> Iterator[Fault]:
    """Yield a fault for each part that cannot be combined."""
    kinds = dict(Evaluator.objects.filter(project=project, slug__in=parts).values_list("slug", "kind"))
    sets = current_sets(project, references)
    scored = {s.evaluator.slug for s in sets}
    defined = {s.evaluator.slug for s in sets if not s.n_scores or s.n_undefined < s.n_scores}
    unknown = deleted_among(project, (part for part in parts if part not in scored))
    for part in parts:
        text = ""
        if kinds.get(part) == Evaluator.Kind.COMBINED:
            text = _("%(name)s is a combination itself; name its parts.")
        elif part in unknown:
            text = _("%(project)s has no evaluator %(name)s.")
        elif part not in scored:
            text = _("%(name)s has no scores with the references “%(references)s”: %(command)s")
        elif part not in defined:
            text = _("%(name)s is undefined for every output, and so would be the combination: leave it out.")
        if text:
            command = f"evalapp score {part} --project {project.slug}"
            facts = {"name": part, "project": project.slug, "references": references, "command": command}
            yield Fault(text % facts, field="parts")


# ---- storing ----------------------------------------------------------------------------------------------


def make_signature(params: Mapping[str, Any], parts: Sequence[ScoreSet]) -> tuple[str, str]:
    """Return the full and the short signature: method, options, and name and signature hash of each part.

    If the parts are too many for the column, the full signature has the first names and a hash of all.
    """

    def shorten(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    names = [f"{s.evaluator.slug}@{shorten(s.full_signature)}" for s in parts]
    rest = ""
    if params["method"] == "stacked":
        rest = f"|aspect:{params['aspect']}|ratings:{params['ratings']}|share:{params['share']:g}|seed:{params['seed']}"
        rest += f"|filter:{params['filter']}" if params.get("filter") else ""
    rest += f"|v:{REVISION}"
    head = f"{NAME}|method:{params['method']}"
    digest = shorten("+".join(names))
    full = f"{head}|parts:{'+'.join(names)}{rest}"
    if len(full) > SIGNATURE:
        room = SIGNATURE - len(head) - len(rest) - 40
        lengths = list(accumulate(len(name) + 1 for name in names))
        n = sum(length - 1 <= room for length in lengths)
        full = f"{head}|parts:{'+'.join(names[:n])}+{len(names) - n}-more@{digest}{rest}"
    return full, f"{head}|parts:{len(names)}@{digest}{rest}"[:300]


def store_combination(
    *,
    run: Run,
    slug: str,
    params: Mapping[str, Any],
    record: Mapping[str, Any],
    parts: Sequence[ScoreSet],
    scores: Iterable[NewScore],
) -> ScoreSet:
    """Store evaluator and score set in one transaction; a set of the same signature is replaced.

    The caller then calls `finish_score_set`. Raises `Conflict` if another evaluator has taken the name.
    """
    signature, short = make_signature(params, parts)
    references = next((s.references for s in parts if s.references), "")
    with transaction.atomic():
        other = Evaluator.objects.filter(project=run.project, slug=slug).first()
        if other is not None and not (other.is_combined and other.options.items() <= dict(params).items()):
            text = _(
                "Another evaluator has taken the name “%(name)s”. Combine these under another name, or delete that "
                "one, then retry this run."
            )
            raise Conflict(text % {"name": slug})
        evaluator, created = Evaluator.objects.update_or_create(
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
        score_set, _created = ScoreSet.objects.update_or_create(
            evaluator=evaluator,
            signature=signature,
            references=references,
            aspect="",
            defaults={"project": run.project, "short_signature": short, "run": run},
        )
        Score.objects.filter(score_set=score_set).delete()
        insert_rows(Score, COLUMNS, (score_row(score_set, row) for row in scores))
        if created:
            audit.record(verb="evaluator.combined", project=run.project, actor=run.created_by, object=evaluator)
    return score_set
