"""One successful call of every API operation in the world of `tests.architecture.world`. Most come from `routes.API`;
this module adds the missing body, query or earlier state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from annotation.models import Campaign, Comparison, Item, Output, WritingCampaign, WrittenReference
from annotation.models.data import Aspect, Reference, ReferenceSet
from evalapp.common.models import Run
from evalapp.settings.judge_endpoints import read_endpoint
from tests.architecture.routes import UUID
from tests.architecture.world import PLAN, World

TEXT = "I would love to, but the rain starts at noon."
PAIR = {"context": ["Any plans for the weekend?"], "references": ["Maybe the lake trail."]}
#: JUDGE_ENDPOINTS of the bodies below; nothing is sent to it.
ENDPOINTS = {
    "hosted": read_endpoint(
        "hosted", {"url": "http://127.0.0.1:9/v1", "models": ["tiny"], "price_in": 0.5, "price_out": 1.5}
    ),
}
#: A body for each kind of run, for a project with a trained `judge` (ream) and `compare` (comparative).
RUNS: dict[str, dict[str, Any]] = {
    "annotate": {"evaluator": "judge", "into": "better"},
    "annotate-preview": {"evaluator": "judge"},
    "select-references": {
        "evaluator": "judge",
        "into": "better",
        "candidates": "corpus:talk",
        "max": 6,
        "controls": True,
    },
    "preview-references": {"evaluator": "judge", "candidates": "outputs"},
    "combine": {"parts": ["length", "random"], "name": "both"},
    "export": {"format": "parquet", "raters": "pseudonyms"},
    "games": {"evaluator": "compare", "systems": "machine", "items": 100},
    "import": {"upload": 1},
    "index": {"corpus": "talk"},
    "judge": {"endpoint": "hosted", "aspect": "quality", "name": "fluency-judge", "budget": 2.5},
    "judge-check": {"endpoint": "hosted", "aspect": "quality", "template": "criteria"},
    "plan": {"evaluator": "shared-bert", "aspect": "quality", "folds": 5},
    "reliability": {"evaluator": "judge", "sample": 100, "max": 8},
    "robustness": {"evaluator": "length"},
    "score": {"evaluator": "bleu-4", "options": {"smooth": "floor"}},
    "selection": {"aspect": "quality", "evaluators": ["length"], "runs": 5},
    "study": {"study": "ablation", "evaluators": ["shared-bert"], "aspect": "quality", "seeds": 3},
    "study-plan": {"study": "seeds", "evaluators": ["shared-bert"], "aspect": "quality"},
    "train": {"evaluator": "shared-bert", "aspect": "quality", "folds": 5, "name": "natural", "apply": True},
}


@dataclass(frozen=True)
class Call:
    """`body` and `query` name objects of the world in braces; `before` sets up the state that the call needs."""

    body: Any = None
    query: str = ""
    parts: dict[str, Any] = field(default_factory=dict)
    content: str = "application/json"
    before: Callable[[World], Any] = lambda world: None


def _state(model: Any, name: str, state: str) -> Callable[[World], Any]:
    return lambda world: model.objects.filter(pk=world.own.values[name]).update(state=state)


def _draft(world: World) -> None:
    from annotation.services.campaigns import create_campaign

    draft = create_campaign(project=world.own.project, user=world.cast.owner, plan={**PLAN, "slug": "draft"})
    world.own.values["campaign"] = draft.pk


def _writing_draft(world: World) -> None:
    from annotation.services.campaigns import create_writing

    plan = {"name": "More", "corpus": world.own.values["corpus"], "evaluator": "rater-alpha", "slug": "more"}
    draft = create_writing(project=world.own.project, user=world.cast.owner, plan=plan)
    world.own.values["writing campaign"] = draft.pk


def _compared(world: World) -> None:
    project = world.own.project
    aspect = Aspect.objects.get(project=project, name="quality")
    for item in Item.objects.filter(project=project):
        a, b = Output.objects.filter(item=item).order_by("system__name")
        Comparison.objects.create(project=project, output_a=a, output_b=b, aspect=aspect, rater="r1", verdict="a")


def _domains(world: World) -> None:
    for number, item in enumerate(Item.objects.filter(project=world.own.project)):
        Item.objects.filter(pk=item.pk).update(meta={"domain": f"d{number % 2}"})


def _second_set(world: World) -> None:
    made = ReferenceSet.objects.create(project=world.own.project, name="extra")
    Reference.objects.create(set=made, item_id=world.own.values["item"], position=0, text=TEXT)


def _unrated_outputs(world: World) -> None:
    """Adds eight items whose outputs nobody has rated, with scores by `length`."""
    from scoring.models import Score, ScoreSet
    from tests.factories import make_outputs

    project = world.own.project
    items = [Item(project=project, key=f"j{k}", context=["Hello."], group=f"h{k}") for k in range(8)]
    score_set = ScoreSet.objects.get(project=project, evaluator__slug="length")
    for output in make_outputs(project, Item.objects.bulk_create(items)):
        value = float(len(output.text))
        Score.objects.create(score_set=score_set, output=output, value=value, note="", input_hash="0" * 64)


def _someone_elses(world: World) -> None:
    """Makes another person the author of the waiting text."""
    WrittenReference.objects.filter(pk=world.own.values["written"]).update(annotator=world.cast.researcher)


CALLS: dict[str, Call] = {
    "projects_create": Call({"slug": "weekend", "name": "Weekend chat"}),
    "projects_update": Call({"notes": "Replies of four systems.", "licence": "CC BY 4.0"}),
    "projects_delete": Call(query="?confirm=alpha"),
    "invitations_create": Call({"role": "annotator", "label": "Nova", "email": "nova@example.org", "days": 14}),
    "webhooks_create": Call(
        {"name": "monitoring", "url": "https://hooks.example.org/evalapp", "events": ["run.failed"]}
    ),
    "webhooks_update": Call({"active": False}),
    "tokens_create": Call({"name": "notebook", "scopes": ["read", "write"], "days": 30}),
    "runs_retry": Call(before=_state(Run, "run", Run.State.CANCELLED)),
    "projects_writing_create": Call(
        {"name": "More replies", "kind": "ream", "evaluator": "rater-alpha", "corpus": "corpus-alpha",
         "items": {"sample": 2}}
    ),
    "writing_partial_update": Call({"guidelines": "Write what you would answer."}),
    "writing_destroy": Call(before=_writing_draft),
    "writing_open_create": Call(before=_writing_draft),
    "writing_resume_create": Call(before=_state(WritingCampaign, "writing campaign", WritingCampaign.State.PAUSED)),
    "writing_tasks_partial_update": Call({"version": 1, "draft": {"text": "I would"}}),
    "writing_tasks_submit_create": Call({"submission": UUID, "text": TEXT, "unscored": True}),
    "writing_tasks_skip_create": Call({"reason": "I do not know the place."}),
    "writing_tasks_back_create": Call({"reference": "{written public}"}),
    "written_withdraw_create": Call({"reason": "Answers another question."}),
    "uploads_create": Call(
        '{"item": "i000", "system": "sys-c", "text": "Hello."}\n', query="?kind=outputs",
        content="application/x-ndjson",
    ),
    "scores_create": Call({"evaluators": ["length", "chrf"]}),
    "systems_partial_update": Call({"kind": "human"}),
    "projects_campaigns_create": Call(
        {"name": "Naturalness", "kind": "likert", "overlap": 3, "items": {"sample": 4}, "seed": 13,
         "aspects": [{"name": "naturalness", "question": "How natural is it?", "low": 1, "high": 6}]}
    ),
    "campaigns_partial_update": Call({"guidelines": "Judge the language only."}),
    "campaigns_recruitments_create": Call(
        {"label": "Prolific, November", "places": 100, "platform": "prolific", "consent": "We store your answers.",
         "questions": [{"name": "age", "question": "How old are you?", "kind": "number", "low": 18, "high": 99}],
         "outcomes": {"passed": {"address": "https://app.prolific.com/submissions/complete?cc=C1"},
                      "full": {"code": "C2"}},
         "min_seconds": 3, "pay": 2.5, "currency": "GBP"}
    ),
    "recruitments_partial_update": Call({"places": 120}),
    "campaigns_destroy": Call(before=_draft),
    "campaigns_open_create": Call(before=_draft),
    "campaigns_resume_create": Call(before=_state(Campaign, "campaign", Campaign.State.PAUSED)),
    "assignments_list": Call(query="?campaign={campaign}"),
    "assignments_flag_create": Call({"reason": "broken", "text": "The text ends in the middle."}),
    "assignments_skip_create": Call({"reason": "unclear"}),
    "corpora_create": Call({"name": "talk", "derive": "items"}),
    "corpus_parts_create": Call({"derive": "items"}),
    "candidates_list": Call(query="?corpus=corpus-alpha&item=i000"),
    "evaluators_score": Call({"pairs": [{**PAIR, "text": TEXT}]}),
    "evaluators_compare": Call({"pairs": [{"context": PAIR["context"], "a": TEXT, "b": "Yes."}]}),
    "evaluators_reliability": Call({"context": PAIR["context"], "references": [*PAIR["references"], TEXT]}),
    "evaluator_alignment": Call(query="?n=2", before=_unrated_outputs),
    "evaluator_alignment_campaign": Call({"n": 4, "overlap": 2}, before=_unrated_outputs),
    "evaluator_sample_campaign": Call({"n": 4, "batches": 2}, before=_unrated_outputs),
    "reference_sets_create": Call({"name": "merged", "merge": ["original", "extra"]}, before=_second_set),
    "reference_sets_destroy": Call(parts={"name": "extra"}, before=_second_set),
    "rater_filters_create": Call({"name": "hasty", "raters": ["r0"], "reason": "Two seconds a text."}),
    "leaderboards_pairs": Call(before=_compared),
    "leaderboards_slices": Call(before=_domains),
    "reports_create": Call({"days": 14, "label": "Reviewers"}),
    "snapshots_create": Call({"board": "systems", "name": "submitted"}),
    "exports_create": Call({"format": "csv", "raters": "pseudonyms"}),
}  # fmt: skip
#: Answers of the worker of the `live` queue, which does not run here.
LIVE = {
    "score": {"signature": "chrf|v:0.2.0", "scores": [23.5], "reasons": [""], "notes": []},
    "compare": {
        "signature": "compare|v:0.2.0", "verdicts": [1], "swap_consistency": 1.0, "notes": [],
        "probabilities": [{"better": 0.5, "tie": 0.25, "worse": 0.25}],
    },
    "reliability": {"signature": "judge|v:0.2.0", "reliability": 0.41},
}  # fmt: skip
#: Calls that cannot succeed in this world: their examples are written by hand and tested elsewhere.
BY_HAND: dict[str, dict[str, Any]] = {
    "trained_create": {  # tests/scoring/api/test_trained.py; the answer is the same for every run
        "status": "202",
        "content": "multipart/form-data",
        "requests": {"request": {"name": "natural", "files": ["evaluator.json", "config.json", "model.safetensors"]}},
    },
    "trained_file": {"status": "200"},
    "confirmations_create": {  # tests/annotation/api/test_writing.py
        "status": "204",
        "requests": {"request": {"submission": UUID, "better": "a"}},
    },
    "writing_next_confirmation_create": {
        "status": "200",
        "response": {
            "id": "8b0f6f0e-3f0e-4a55-9c43-0d6a3a3b1a52", "campaign": 3, "context": PAIR["context"], "source": None,
            "texts": [{"side": "a", "text": TEXT}, {"side": "b", "text": PAIR["references"][0]}], "left": 4,
        },
    },
}  # fmt: skip
