"""Outputs whose judgement tells most about an evaluator: where it and people disagree, or where it is expected to err;
and the versions of a judge with their agreement."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.db.models import Avg, Q
from django.db.models.functions import Length
from django.utils.translation import gettext as _

from annotation.models import Aspect, Campaign, Output, Rating
from evalapp.accounts.models import Project
from evalapp.common.errors import BadInput

from ..models import Evaluator, Score, ScoreSet
from .judge_report import ReportQuery, find_report, has_scale
from .judge_split import get_split, iterate_looks
from .judges import split_keys

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Versions that the history shows, newest first.
VERSIONS = 20
#: Fewer scored outputs are no basis.
LEAST_OUTPUTS = 4


@dataclass(frozen=True)
class ScoredOutputs:
    """Scored outputs as (n,) columns in the order of item, system and step. `human`: mean rating, nan without one."""

    output: NDArray[np.int64]
    item: list[str]
    system: list[str]
    step: list[int | None]
    cluster: list[str]
    is_test: NDArray[np.bool_]
    length: NDArray[np.float64]
    score: NDArray[np.float64]
    human: NDArray[np.float64]

    @property
    def unit(self) -> list[tuple[str, int | None]]:
        """The compared system of each output, with its step."""
        return list(zip(self.system, self.step, strict=True))

    def make_digest(self) -> str:
        """Return a hash of the names of the outputs, which tells whether they are still the same."""
        names = list(zip(self.item, self.system, self.step, strict=True))
        return hashlib.sha256(repr(names).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class TellingOutput:
    """An output to judge: `rating` is the mean so far, None without one; `error` the distance of the score from it, or
    the expected one."""

    output: int
    item: str
    system: str
    step: int | None
    text: str
    score: float
    rating: float | None
    error: float

    @property
    def reason(self) -> str:
        return _("Disagreement with raters") if self.rating is not None else _("Expected error")

    def as_dict(self) -> dict[str, Any]:
        """Return the output as JSON-safe values."""
        names = ("item", "system", "step", "text", "score", "rating", "error", "reason")
        return {name: getattr(self, name) for name in names}


def load_scored_outputs(project: Project, score_set: ScoreSet, aspect: Aspect) -> ScoredOutputs:
    """Return the outputs that the evaluator scored, without those in its training data. Ratings of outputs that a
    campaign selected for a reason (chance 0) are left out."""
    import numpy as np

    scored = Score.objects.filter(score_set=score_set, value__isnull=False, in_training=False)
    values = dict(scored.values_list("output", "value"))
    if len(values) < LEAST_OUTPUTS:
        raise BadInput(_("%(name)s has scored too few outputs.") % {"name": score_set.evaluator.slug})
    is_sampled = ~Q(meta__has_key="propensity") | Q(meta__propensity__gt=0)
    ratings = Rating.objects.filter(is_sampled, project=project, aspect=aspect, output__isnull=False)
    means = dict(ratings.values("output").annotate(mean=Avg("value")).values_list("output", "mean"))
    split = get_split(project)
    fields = ("pk", "item__key", "system__name", "step", "item__group", "size")
    rows = Output.objects.filter(project=project).annotate(size=Length("text")).values_list(*fields)
    found = sorted(
        (row for row in rows.iterator(20_000) if row[0] in values),
        key=lambda row: (*row[1:3], -1 if row[3] is None else row[3]),
    )
    output, item, system, step, group, size = (list(column) for column in zip(*found, strict=True))
    return ScoredOutputs(
        output=np.array(output), item=item, system=system, step=step,
        cluster=[name or f"item:{key}" for name, key in zip(group, item, strict=True)],
        is_test=np.array([split.is_test(name, key) for name, key in zip(group, item, strict=True)]),
        length=np.array(size, dtype=np.float64), score=np.array([values[pk] for pk in output]),
        human=np.array([means.get(pk, np.nan) for pk in output]),
    )  # fmt: skip


def hide_test_ratings(scored: ScoredOutputs) -> ScoredOutputs:
    """Return the outputs without the ratings of the test part, which choose nothing."""
    import numpy as np

    return replace(scored, human=np.where(scored.is_test, np.nan, scored.human))


def predict_output_errors(scored: ScoredOutputs) -> NDArray[np.float64]:
    """Return the expected error of each output; see `evalapp.stats.assisted.choice.predict_errors`."""
    from evalapp.stats.assisted.choice import predict_errors

    return predict_errors(scored.human, scored.score, scored.length, scored.cluster, [repr(one) for one in scored.unit])


def list_telling_outputs(project: Project, score_set: ScoreSet, aspect: Aspect, n: int) -> list[TellingOutput]:
    """Return up to `n` outputs of the development part, most telling first within each reason.

    Half are rated outputs whose score is farthest from the mean rating, half are outputs without a rating with
    the largest expected error; if there are too few of a kind, more of the other. At most one is of each item and kind.
    Scores on another scale are brought to the mean and standard deviation of the ratings. Ratings of the test part are
    not looked at.
    """
    import numpy as np

    scored = hide_test_ratings(load_scored_outputs(project, score_set, aspect))
    rated = np.isfinite(scored.human)
    value = scored.score
    if not has_scale(score_set.evaluator) and rated.sum() > 1:
        slope = scored.human[rated].std() / (value[rated].std() or 1.0)
        value = scored.human[rated].mean() + slope * (value - value[rated].mean())
    apart = np.abs(value - scored.human)
    expected = predict_output_errors(scored)
    disputed = _pick(scored, np.where(rated, apart, -1.0))
    unknown = _pick(scored, np.where(~scored.is_test & ~rated, expected, -1.0))
    n_unknown = min(len(unknown), max(n - n // 2, n - len(disputed)))
    picked = [*disputed[: n - n_unknown], *unknown[:n_unknown]]
    numbers = scored.output[picked].tolist()
    texts = {
        pk: text
        for keys in split_keys(numbers)
        for pk, text in Output.objects.filter(pk__in=keys).values_list("pk", "text")
    }
    return [
        TellingOutput(
            output=pk, item=scored.item[k], system=scored.system[k], step=scored.step[k], text=texts[pk],
            score=float(value[k]), rating=float(scored.human[k]) if rated[k] else None,
            error=float(apart[k] if rated[k] else expected[k]),
        )
        for k, pk in zip(picked, numbers, strict=True)
    ]  # fmt: skip


def _pick(scored: ScoredOutputs, size: NDArray[np.float64]) -> list[int]:
    """Return the rows with a size from 0 on, largest first, the largest of each item only."""
    best: dict[str, int] = {}
    for k in (-size).argsort(kind="stable").tolist():
        if size[k] >= 0:
            best.setdefault(scored.item[k], k)
    return list(best.values())


def list_alignment_campaigns(project: Project, evaluator: Evaluator) -> list[Campaign]:
    """Return the campaigns that were made to align this evaluator or another judge of its aspect, newest first."""
    names = list_versions(project, evaluator)
    rows = Campaign.objects.filter(project=project, plan__chosen__reason="alignment").order_by("-pk")
    return [row for row in rows if row.plan["chosen"]["evaluator"] in names]


def list_versions(project: Project, evaluator: Evaluator) -> dict[str, Evaluator]:
    """Return the judges of the same aspect and kind, newest first; of another evaluator only itself."""
    if not evaluator.is_judge:
        return {evaluator.slug: evaluator}
    rows = Evaluator.objects.filter(project=project, kind=Evaluator.Kind.JUDGE).order_by("-pk")
    same = ("aspect", "kind")
    return {row.slug: row for row in rows if all(row.options[name] == evaluator.options[name] for name in same)}


def make_history(project: Project, evaluator: Evaluator, aspect: Aspect) -> dict[str, Any]:
    """Return the versions of a judge with their agreement on the development part, and every look at the test part.

    A figure of the test part appears only as it was at a look that somebody asked for, with the same aspect; `looks`
    counts those of all versions and aspects, because each may have influenced the next version.
    """
    versions = list_versions(project, evaluator)
    shown: dict[str, list[dict[str, Any]]] = {}
    n_looks = 0
    for look in iterate_looks(project, list(versions)):
        n_looks += 1
        if look.figures.get("aspect", aspect.name) == aspect.name:
            shown.setdefault(look.evaluator, []).append({"at": look.at, **look.figures})
    rows = []
    for row in list(versions.values())[:VERSIONS]:
        sets = ScoreSet.objects.filter(evaluator=row, scored_at__isnull=False).select_related("evaluator")
        newest = sets.order_by("-scored_at").first()
        if newest is None:
            continue
        report = find_report(project, ReportQuery(newest, aspect, "development"))
        names = ("alpha_without", "alpha_with", "correlation", "decided", "mean_absolute", "n_outputs")
        rows.append({
            "evaluator": row.slug, "template": row.options.get("template", ""), "model": row.record.get("model", ""),
            "examples": len(row.record.get("examples", [])), "examples_from": row.options.get("examples_from", ""),
            "development": {name: report[name] for name in names}, "test": shown.get(row.slug, []),
        })  # fmt: skip
    return {"versions": rows, "looks": n_looks}
