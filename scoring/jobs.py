"""The background jobs of this app."""

from dataclasses import replace

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from evalapp.common.jobs import Job, register

_PIPELINES, _SERVICES, _RESULTS = "scoring.pipelines.", "scoring.services.", "scoring.selectors.run_results:"

score = Job(
    "score",
    "cpu",
    _PIPELINES + "score:run",
    "Apply an evaluator to the outputs of a project.",
    request=_SERVICES + "scores:start_scoring",
    params=_SERVICES + "scores:ScoringOptions",
    give_up=_SERVICES + "scores:give_up_scores",
    label=_("Scores of an evaluator"),
    gone=_RESULTS + "scores_gone",
    event="run",
)
refit = Job(
    "refit",
    "cpu",
    _PIPELINES + "refit:run",
    "Fit the default assistant to the judgements so far, and score all outputs.",
    label=_("Fit of the assistant"),
    gone=_RESULTS + "scores_gone",
)
combine = Job(
    "combine",
    "cpu",
    _PIPELINES + "combine:run",
    "Combine several evaluators into one.",
    request=_SERVICES + "combining:start_combination",
    params=_SERVICES + "combining:CombineOptions",
    label=_("Combined evaluator"),
    gone=_RESULTS + "scores_gone",
    event="run",
)
judge = Job(
    "judge",
    "gpu",
    _PIPELINES + "judge:run",
    "Let a language model at a configured endpoint or in a configured folder judge the outputs of a project.",
    request=_SERVICES + "judges:start_judge",
    params=_SERVICES + "judges:JudgeOptions",
    give_up=_SERVICES + "scores:give_up_scores",
    label=pgettext_lazy("evaluator", "Judge"),
    gone=_RESULTS + "scores_gone",
    event="run",
)
judge_check = Job(
    "judge-check",
    "cpu",
    _PIPELINES + "judge:check",
    "Check a judge before it starts: requests, tokens, cost, time and example prompts. Nothing is sent.",
    request=_SERVICES + "judges:start_check",
    params=_SERVICES + "judges:JudgeOptions",
    label=_("Check before a judge"),
)
train = Job(
    "train",
    "train",
    _PIPELINES + "train:run",
    "Train an evaluator on the data of a project.",
    request=_SERVICES + "training:start_training",
    params=_SERVICES + "training:TrainingOptions",
    fragment="scoring:training-curve",
    give_up=_SERVICES + "artefacts:give_up_evaluator",
    label=_("Training"),
    gone=_RESULTS + "evaluator_gone",
    event="training",
)
plan = Job(
    "plan",
    "cpu",
    _PIPELINES + "train:check",
    "Check a training before it starts: counts, steps, time, and what is missing.",
    request=_SERVICES + "training:start_check",
    params=_SERVICES + "training:TrainingOptions",
    label=_("Check before a training"),
)
select_references = Job(
    "select-references",
    "gpu",
    _PIPELINES + "reference_selection:run",
    "Select references with a trained ream into a new reference set.",
    request=_SERVICES + "reference_selection:start_reference_selection",
    params=_SERVICES + "reference_selection:ReferenceSelection",
    label=_("Selection of references"),
    gone=_RESULTS + "references_gone",
    event="run",
)
preview_references = Job(
    "preview-references",
    "gpu",
    _PIPELINES + "reference_selection:preview",
    "Try a selection of references on five items; nothing is stored.",
    request=_SERVICES + "reference_selection:start_preview",
    params=_SERVICES + "reference_selection:ReferenceSelection",
    label=_("Preview of a selection of references"),
)
reliability = Job(
    "reliability",
    "gpu",
    _PIPELINES + "reliability_curves:run",
    "Compute the reliability of reference sets by size and by method of selection.",
    request=_SERVICES + "reports:start_curves",
    params=_SERVICES + "reports:CurveOptions",
    label=_("Reliability of references"),
    event="run",
)
robustness = Job(
    "robustness",
    "gpu",
    _PIPELINES + "robustness:run",
    "Score texts that people wrote under constraints with one evaluator.",
    request=_SERVICES + "reports:start_robustness",
    params=_SERVICES + "reports:RobustnessOptions",
    label=_("Robustness"),
    event="run",
)
selection = Job(
    "selection",
    "gpu",
    _PIPELINES + "checkpoint_selection:run",
    "Let evaluators select among checkpoints and variants, and compare the picks with human judgements.",
    request=_SERVICES + "reports:start_selection",
    params=_SERVICES + "reports:SelectionOptions",
    label=_("Selection of checkpoints"),
    event="run",
)
games = Job(
    "games",
    "gpu",
    _PIPELINES + "games:run",
    "Rank systems by games that a trained evaluator for pairs decides.",
    request=_SERVICES + "reports:start_games",
    params=_SERVICES + "reports:GamesOptions",
    label=_("Games between systems"),
    gone=_RESULTS + "evaluator_gone",
    event="run",
)
artefact = Job(
    "artefact",
    "gpu",
    _PIPELINES + "artefacts:run",
    "Check an uploaded evaluator and store it.",
    give_up=_SERVICES + "artefacts:give_up_evaluator",
    label=_("Uploaded evaluator"),
    gone=_RESULTS + "evaluator_gone",
    spent=_SERVICES + "artefacts:is_spent",
    event="run",
)
study = Job(
    "study",
    "train",
    _PIPELINES + "studies:run",
    "Train evaluators with several seeds or without their parts, and tabulate them as papers do.",
    request=_SERVICES + "studies:start_study",
    params=_SERVICES + "studies:StudyOptions",
    label=_("Study"),
    event="training",
)
study_plan = Job(
    "study-plan",
    "cpu",
    _PIPELINES + "studies:check",
    "Check a study before it starts: number of trainings, time, and what the data lack.",
    request=_SERVICES + "studies:start_check",
    params=_SERVICES + "studies:StudyOptions",
    label=_("Check before a study"),
)
rank = Job(
    "rank",
    "cpu",
    _PIPELINES + "rank:run",
    "Compute a leaderboard that is too large for a page.",
    label=_("Leaderboard"),
)

for job in (
    score, refit, combine, judge, judge_check, train, plan, select_references, preview_references, reliability,
    robustness, selection, games, artefact, study, study_plan, rank,
):  # fmt: skip
    register(job)
#: Names before 0.2.0, which programs may use for one more release; the run gets the new name.
for former, job in (("annotate", select_references), ("annotate-preview", preview_references)):
    register(replace(job, kind=former, help=f"The former name of `{job.kind}`.", is_former=True))
