"""Start judges, and store what they answer. The prompts and the reading of answers are in `scoring.ml.judges`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from annotation.models import Aspect, Comparison
from evalapp.accounts.models import Project
from evalapp.common import audit
from evalapp.common.errors import BadInput, Conflict
from evalapp.common.models import Run
from evalapp.common.params import check_values, param, seed_param
from evalapp.common.queue import enqueue_run

from ..models import Evaluator, JudgeAnswer, JudgeTemplate, ScoreSet
from ..selectors.aspects import choose_aspect, find_campaign
from ..selectors.chosen_sets import get_set
from ..selectors.inputs import count_outputs, get_reference_set
from ..selectors.judge_report import Part, choose_report, find_report
from ..selectors.judge_split import LOOKED, count_groups, get_split
from ..selectors.judges import (
    get_endpoint,
    get_template,
    make_judge,
    read_model_facts,
    read_rubric,
    refuse_leaving,
)
from .training import free_slug, naming

if TYPE_CHECKING:
    from scoring.ml.judges import PromptTemplate
    from scoring.ml.judges.endpoint import Endpoint, Outcome
    from scoring.ml.judges.local import FolderFacts

NAME = "judge"
#: Options that end a run or add to it, and change no answer.
LIMITS = ("budget", "minutes", "injections")
METHODS = {
    "": gettext_lazy("As the endpoint can"),
    "logprobs": gettext_lazy("Expected rating by log-probabilities"),
    "yes-no": gettext_lazy("Probability of yes"),
    "json": gettext_lazy("Number in a structured answer"),
    "reward": gettext_lazy("Number of a reward model"),
}
PAIRS = {
    "compared": gettext_lazy("Pairs that people compared"),
    "all": gettext_lazy("All pairs of outputs of an item"),
}


@dataclass(frozen=True)
class JudgeOptions:
    """Options of a judge."""

    endpoint: str = param(
        help="A language model in JUDGE_ENDPOINTS, by name.", needed=gettext_noop("Name the endpoint.")
    )
    model: str = param("", help="One of the endpoint's models; empty: the first.")
    aspect: str = param("", help="The aspect to judge; empty: the first with judgements.")
    template: str = param("", help="The prompt: built in or a template of the project; empty: the usual one.")
    campaign: str = param("", help="Whose question, scale and guidelines are used; empty: the newest that fits.")
    references: str = param("", help="The reference set that the template may show; empty: none.")
    method: str = param("", help="How ratings are read from answers; empty: as the endpoint can.", choices=METHODS)
    temperature: float = param(0.0, help="Randomness of answers; 0: the most probable one.", low=0, high=2)
    samples: int = param(1, help="Answers for each request, whose ratings are averaged.", low=1, high=20)
    pairs: str = param("compared", help="Comparing templates: the pairs to compare.", choices=PAIRS)
    examples: int = param(0, help="Rated texts that the prompt shows; their groups count as training.", low=0, high=20)
    examples_from: str = param("", help="A campaign whose rated outputs are the examples; empty: all ratings.")
    seed: int = seed_param()
    name: str = param("", help="Name of the judge; empty: the next free `judge-N`.")
    injections: int = param(
        0, help="Texts that are judged again with an attempt to get the best rating.", low=0, high=200
    )
    budget: float | None = param(None, help="Most that this run may cost, in the unit of the prices.", low=0)
    minutes: float | None = param(
        None, help="Most minutes that this run may ask; then it stops and keeps its answers.", low=0
    )


def start_judge(*, project: Project, user: Any = None, options: JudgeOptions, send: bool = True) -> Run:
    """Queue the judge under its name, or return the active run of the same request.

    A judge of the same name and options continues: only outputs without an answer are asked for. Raises `BadInput`
    unless texts of the project may leave this installation.
    """
    config = resolve_options(project, options)
    refuse_leaving(project, get_endpoint(config["endpoint"]))
    with naming(project):
        slug = _choose_slug(project, options.name, config)
        for run in Run.objects.filter(project=project, kind=NAME, state__in=Run.ACTIVE, cancel_requested=False):
            if run.params["config"] == config and options.name in ("", run.params["slug"]):
                return run
        params = {"slug": slug, "config": config, **_list_limits(options)}
        return _enqueue(project, user, params, send=send)


def start_check(*, project: Project, user: Any = None, options: JudgeOptions, send: bool = True) -> Run:
    """Queue the dry check: requests, tokens, cost, time and three prompts; nothing is sent."""
    config = resolve_options(project, options)
    title = gettext_noop("Check the judge %(model)s") % {"model": config["model"]}
    params = {"config": config, **_list_limits(options)}
    return enqueue_run(kind="judge-check", project=project, user=user, params=params, title=title, send=send)


def judge_again(*, project: Project, user: Any = None, evaluator: Evaluator, send: bool = True) -> Run:
    """Queue the same judge for new and changed outputs."""
    refuse_leaving(project, get_endpoint(evaluator.options["endpoint"]))
    params = {"slug": evaluator.slug, "config": evaluator.options, "budget": None, "injections": 0}
    return _enqueue(project, user, params, send=send)


def _list_limits(options: JudgeOptions) -> dict[str, Any]:
    return {name: getattr(options, name) for name in LIMITS}


def _choose_slug(project: Project, name: str, config: Mapping[str, Any]) -> str:
    """Return the name of an equal judge, or a free one. Raises `Conflict` if another evaluator has the given name."""
    rows = Evaluator.objects.filter(project=project, kind=Evaluator.Kind.JUDGE)
    for row in rows.filter(slug=name) if name else rows:
        if row.options == config:
            return row.slug
        if name:
            other = ", ".join(sorted(key for key in {*row.options, *config} if row.options.get(key) != config.get(key)))
            text = _(
                "“%(name)s” is a judge that differs in: %(other)s. Choose another name, or continue that judge: "
                "evalapp score %(name)s --project %(project)s"
            )
            raise Conflict.for_field("name", text % {"name": name, "other": other, "project": project.slug})
    return free_slug(project, NAME, name)


def _enqueue(project: Project, user: Any, params: dict[str, Any], *, send: bool) -> Run:
    title = gettext_noop("Judge %(aspect)s with %(model)s as %(name)s")
    title %= {"aspect": params["config"]["aspect"], "model": params["config"]["model"], "name": params["slug"]}
    return enqueue_run(kind=NAME, project=project, user=user, params=params, title=title, send=send)


def resolve_options(project: Project, options: JudgeOptions) -> dict[str, Any]:
    """Return everything that determines the answers, which is stored with the judge.

    Texts of template and rubric are copied, so that a later change of a campaign does not change the judge.
    """
    check_values(options)
    endpoint = get_endpoint(options.endpoint)
    model = options.model or endpoint.models[0]
    if model not in endpoint.models:
        text = _("The endpoint %(name)s has no model “%(model)s”. It has: %(known)s.")
        facts = {"name": endpoint.name, "model": model, "known": ", ".join(endpoint.models)}
        raise BadInput.for_field("model", text % facts)
    folder = read_model_facts(endpoint)
    template = get_template(project, options.template or _choose_template(options, folder))
    _check_method(options, endpoint, template, folder)
    is_pairwise = template.kind == JudgeTemplate.Kind.PAIRWISE
    aspect = choose_aspect(project, options.aspect, judged_by="comparisons" if is_pairwise else "ratings")
    _check_use(project, options, aspect, is_pairwise=is_pairwise)
    if options.references:
        get_reference_set(project, options.references)
        if "references" not in template.placeholders:
            text = _("The template %(name)s shows no references.") % {"name": template.name}
            raise BadInput.for_field("references", text)
    if options.budget is not None and not (endpoint.price_in or endpoint.price_out):
        text = _("The endpoint %(name)s has no prices, so a budget has no effect.") % {"name": endpoint.name}
        raise BadInput.for_field("budget", text)
    rubric = read_rubric(project, aspect, options.campaign, is_pairwise=is_pairwise)
    method = options.method or ("logprobs" if endpoint.has_logprobs else "json")
    if folder is not None and folder.kind == "reward":
        method = "reward"
    config = {
        "endpoint": endpoint.name, "model": model, "aspect": aspect.name, "kind": template.kind,
        "template": template.name, "template_text": template.text, **rubric, "references": options.references,
        "method": method, "temperature": float(options.temperature), "samples": options.samples,
        "pairs": options.pairs if is_pairwise else "", "examples": options.examples, "seed": options.seed,
        "split": get_split(project).key,
        **({} if folder is None else {"local": folder.kind, "controls": list(folder.controls)}),
    }  # fmt: skip
    if options.examples_from:
        config["examples_from"] = options.examples_from
    judge = make_judge(config)
    if method == "logprobs" and not is_pairwise and not judge.rubric.points:
        if options.method:
            text = _("The scale has too many points for log-probabilities; use the method json.")
            raise BadInput.for_field("method", text)
        config["method"] = "json"
    return config


def _choose_template(options: JudgeOptions, folder: FolderFacts | None) -> str:
    if folder is not None and folder.kind == "reward":
        return "reward"
    return "yes-no" if options.method == "yes-no" else "plain"


def _check_method(
    options: JudgeOptions, endpoint: Endpoint, template: PromptTemplate, folder: FolderFacts | None
) -> None:
    """Raise `BadInput` if method, template and kind of model do not fit together, or options would have no effect."""
    from scoring.ml.judges.prompts import REWARDS

    names = {"name": endpoint.name, "templates": ", ".join(REWARDS), "template": template.name}
    is_reward = folder is not None and folder.kind == "reward"
    if is_reward != (template.name in REWARDS):
        text = _("The endpoint %(name)s is no reward model, so it cannot use the template %(template)s.")
        if is_reward:
            text = _("The endpoint %(name)s is a reward model. Its templates are %(templates)s.")
        raise BadInput.for_field("template", text % names)
    if options.method and is_reward != (options.method == "reward"):
        text = _("The method reward is that of reward models, which have no other.")
        raise BadInput.for_field("method", text)
    if options.method == "yes-no" and template.kind == JudgeTemplate.Kind.PAIRWISE:
        raise BadInput.for_field("method", _("The method yes-no rates texts; choose another template or method."))
    if folder is not None and options.method != "json":
        for name, is_other in (("samples", options.samples != 1), ("temperature", options.temperature != 0)):
            if is_other:
                text = _("A model in a folder always gives a text the same probabilities. Use the method json.")
                raise BadInput.for_field(name, text)
    if is_reward:
        if options.examples:
            raise BadInput.for_field("examples", _("A reward model reads no examples."))
        if options.injections:
            text = _("Attempts to get the best rating are tried on ratings, which a reward model does not give.")
            raise BadInput.for_field("injections", text)


def _check_use(project: Project, options: JudgeOptions, aspect: Aspect, *, is_pairwise: bool) -> None:
    if not count_outputs(project):
        text = _("%(project)s has no outputs yet. Upload a JSONL or CSV file, or run `evalapp load`.")
        raise BadInput(text % {"project": project.slug})
    if is_pairwise and options.examples:
        raise BadInput.for_field("examples", _("Examples are rated texts, so a comparing template shows none."))
    if options.examples_from:
        find_campaign(project, options.examples_from)
        if not options.examples:
            raise BadInput.for_field("examples_from", _("Say how many examples to take from the campaign."))
    if is_pairwise and options.injections:
        raise BadInput.for_field("injections", _("Attempts to get the best rating are tried on rated texts only."))
    if is_pairwise and options.pairs == "compared":
        compared = Comparison.objects.filter(project=project, aspect=aspect, output_b__isnull=False)
        if not compared.exists():
            text = _("Nobody has compared outputs by %(aspect)s. Choose all pairs.") % {"aspect": aspect.name}
            raise BadInput.for_field("pairs", text)


def make_report(
    *, project: Project, user: Any, evaluator: str, given: Mapping[str, str], is_test: bool
) -> tuple[ScoreSet, dict[str, Any]]:
    """Return a score set of the evaluator and its report as one more rater.

    `given` may name `set`, `aspect` and `epsilon`. A judge's report is about the development part of the groups; with
    `is_test` about the test part, and that it is shown is recorded.
    """
    score_set = get_set(project, evaluator, given.get("set", ""))
    row = score_set.evaluator
    part: Part = "all"
    if row.is_judge:
        part = "test" if is_test else "development"
    query = choose_report(project, score_set, given.get("aspect", ""), part, given.get("epsilon", ""))
    report = find_report(project, query)
    if part == "test":
        names = (
            "alpha_with", "alpha_without", "correlation", "decided", "mean_absolute", "n_outputs", "aspect",
        )  # fmt: skip
        audit.record(
            verb=LOOKED, project=project, actor=user, object=row.slug, figures={name: report[name] for name in names}
        )  # fmt: skip
        report["looks"] += 1
    return score_set, report


# ---- storing ----------------------------------------------------------------------------------------------------


def open_judge(*, run: Run, slug: str, config: Mapping[str, Any], record: Mapping[str, Any]) -> Evaluator:
    """Return the evaluator of the judge, created if needed. Raises `Conflict` if another one has taken the name."""
    with transaction.atomic():
        kept = {"groups": count_groups(run.project), **record}
        row, created = Evaluator.objects.get_or_create(
            project=run.project,
            slug=slug,
            defaults={
                "name": NAME, "kind": Evaluator.Kind.JUDGE, "options": dict(config), "record": kept, "run": run,
            },
        )  # fmt: skip
        if not row.is_judge or row.options != dict(config):
            text = _("Another evaluator has taken the name “%(name)s”. Choose another name.")
            raise Conflict(text % {"name": slug})
        if created:
            audit.record(
                verb="evaluator.judged", project=run.project, actor=run.created_by, object=row,
                endpoint=config["endpoint"], model=config["model"],
            )  # fmt: skip
    return row


def open_judge_set(*, run: Run, evaluator: Evaluator, signature: str) -> ScoreSet:
    """Return the score set of this signature, created if needed; a new one belongs to the run."""
    score_set, _created = ScoreSet.objects.get_or_create(
        evaluator=evaluator, signature=signature[:500], references=evaluator.options["references"],
        aspect=evaluator.options["aspect"],
        defaults={"project": run.project, "short_signature": signature[:300], "run": run},
    )  # fmt: skip
    return score_set


def update_record(*, evaluator: Evaluator, **figures: Any) -> None:
    """Store what a run found out about the judge, such as its consistency, for the report."""
    evaluator.record = {**evaluator.record, **figures}
    evaluator.save(update_fields=["record"])


def store_answers(*, run: Run, endpoint: str, outcomes: Sequence[Outcome], costs: Sequence[float]) -> None:
    """Store the answers of a run, and let their requests make place for others."""
    rows = [
        JudgeAnswer(
            project=run.project, endpoint=endpoint, digest=one.request.digest, repeat=one.request.repeat,
            model=one.answer.model, answer=one.answer.as_json(), characters=one.request.n_characters,
            prompt_tokens=one.answer.prompt_tokens, completion_tokens=one.answer.completion_tokens, cost=cost,
            seconds=one.answer.seconds, run=run,
        )
        for one, cost in zip(outcomes, costs, strict=True)
        if one.answer is not None
    ]  # fmt: skip
    # A worker believed lost may have stored the same answer.
    JudgeAnswer.objects.bulk_create(rows, ignore_conflicts=True)
    for one in outcomes:
        one.settle()


def save_template(*, project: Project, user: Any = None, name: str, kind: str, text: str) -> JudgeTemplate:
    """Store a new version of a template; an equal last version is returned as it is."""
    from scoring.ml.judges import TEMPLATES, PromptTemplate, RubricError, check_template

    if name in TEMPLATES:
        raise BadInput.for_field("name", _("“%(name)s” is a built-in template. Choose another name.") % {"name": name})
    text = text.replace("\r\n", "\n").strip()
    try:
        check_template(PromptTemplate(name, kind, text))
    except RubricError as error:
        raise BadInput.for_field("text", str(error)) from error
    with transaction.atomic():
        rows = JudgeTemplate.objects.select_for_update().filter(project=project, name=name).order_by("-version")
        last = rows.first()
        if last is not None and (last.kind, last.text) == (kind, text):
            return last
        if last is not None and last.kind != kind:
            raise BadInput.for_field("kind", _("All versions of a template are of one kind. Choose another name."))
        version = 1 if last is None else last.version + 1
        row = JudgeTemplate.objects.create(
            project=project, name=name, version=version, kind=kind, text=text, created_by=user
        )
        audit.record(verb="judge-template.saved", project=project, actor=user, object=str(row))
    return row
