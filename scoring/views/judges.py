"""Pages of judges: configure, check and start one, templates with their versions, and the answers as a file."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.models import Campaign
from evalapp.accounts.forms import submit
from evalapp.accounts.models import Project
from evalapp.accounts.selectors import can
from evalapp.common.pages import page, project_page
from scoring.forms.boards import list_aspects
from scoring.forms.fields import SeedField, list_reference_sets, number_field, set_choices

from ..models import JudgeTemplate
from ..selectors.judge_answers import find_judge, iterate_answer_rows, make_reader
from ..selectors.judges import get_template, list_templates
from ..selectors.runs import find_numbered_run
from ..services.judges import LIMITS, METHODS, PAIRS, JudgeOptions, make_report, save_template, start_check, start_judge
from .starting import start_run


class JudgeForm(forms.Form):
    endpoint = forms.ChoiceField(label=gettext_lazy("Endpoint"))
    model = forms.ChoiceField(required=False, label=gettext_lazy("Model"))
    aspect = forms.ChoiceField(required=False, label=gettext_lazy("Aspect"))
    template = forms.ChoiceField(
        required=False,
        label=gettext_lazy("Template"),
        help_text=gettext_lazy("The prompt. “pairs” compares two outputs at a time."),
    )
    method = forms.ChoiceField(choices=list(METHODS.items()), required=False, label=gettext_lazy("Method"))
    pairs = forms.ChoiceField(
        choices=list(PAIRS.items()), required=False, initial="compared", label=gettext_lazy("Pairs"),
        help_text=gettext_lazy("Comparing templates only."),
    )  # fmt: skip
    references = forms.ChoiceField(required=False, label=gettext_lazy("References"))
    samples = number_field(
        JudgeOptions, "samples", gettext_lazy("Answers per request"), gettext_lazy("Their ratings are averaged."),
        required=False,
    )  # fmt: skip
    temperature = forms.FloatField(
        required=False, min_value=0, max_value=2, label=gettext_lazy("Temperature"),
        help_text=gettext_lazy("0: the most probable answer."),
    )  # fmt: skip
    examples = number_field(
        JudgeOptions, "examples", gettext_lazy("Examples"),
        gettext_lazy("Rated texts in the prompt; their groups count as training data."), required=False,
    )  # fmt: skip
    injections = number_field(
        JudgeOptions, "injections", gettext_lazy("Attacked texts"),
        gettext_lazy("Texts that are judged again with an attempt to get the best rating; for the report."),
        required=False,
    )  # fmt: skip
    examples_from = forms.ChoiceField(
        required=False, label=gettext_lazy("Examples from"),
        help_text=gettext_lazy("A campaign whose rated outputs are the examples; always of the development part."),
    )  # fmt: skip
    seed = SeedField(required=False, help_text=gettext_lazy("Selects the examples."))
    budget = forms.FloatField(
        required=False, min_value=0, label=gettext_lazy("Budget"),
        help_text=gettext_lazy("The run stops with what it has when its answers cost so much."),
    )  # fmt: skip
    minutes = forms.FloatField(
        required=False, min_value=0, label=gettext_lazy("Minutes"),
        help_text=gettext_lazy("The run stops after so many minutes and keeps its answers."),
    )  # fmt: skip
    name = forms.SlugField(
        max_length=80, required=False, label=gettext_lazy("Name"),
        help_text=gettext_lazy("Lower-case letters, digits, hyphens. Empty: judge-1, judge-2 and so on."),
    )  # fmt: skip

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = settings.JUDGE_ENDPOINTS
        campaigns = Campaign.objects.filter(project=project, kind=Campaign.Kind.LIKERT).exclude(opened_at=None)
        models = dict.fromkeys(model for row in rows.values() for model in row["models"])
        set_choices(
            self, endpoint=list(rows), model=["", *models], aspect=["", *list_aspects(project, rated=False)],
            template=["", *(template.name for template in list_templates(project))],
            references=["", *list_reference_sets(project)],
            examples_from=["", *campaigns.order_by("-pk").values_list("slug", flat=True)],
        )  # fmt: skip

    def as_options(self) -> JudgeOptions:
        given = {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}
        return JudgeOptions(**given)


class TemplateForm(forms.Form):
    name = forms.SlugField(
        max_length=40, label=gettext_lazy("Name"),
        help_text=gettext_lazy("The name of one of your templates makes a new version of it."),
    )  # fmt: skip
    kind = forms.ChoiceField(choices=JudgeTemplate.Kind.choices, label=gettext_lazy("Kind"))
    text = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 14}), label=gettext_lazy("Text"),
        help_text=gettext_lazy(
            "Needs {answer_format}, and {output} or, for a comparison, {output_a} and {output_b}. May have {question}, "
            "{scale}, {guidelines}, {context}, {source}, {references} and {examples}."
        ),
    )  # fmt: skip


@project_page(GET="write", POST="write")
def judge(request: HttpRequest, project: Project) -> HttpResponse:
    form = JudgeForm(request.POST or None, project=project, initial=_read_initial(request, project))
    start = start_check if "check" in request.POST else start_judge
    if response := start_run(request, project, form, start):
        return response
    context = {"project": project, "form": form, "has_endpoints": bool(settings.JUDGE_ENDPOINTS)}
    context["has_folders"] = any(row["folder"] for row in settings.JUDGE_ENDPOINTS.values())
    return page(request, "scoring/judges/start.html", context, status=422 if form.errors else 200)


def _read_initial(request: HttpRequest, project: Project) -> dict[str, Any]:
    """Return the options of the run `check` or of the judge `from`, with the examples of the campaign
    `examples_from`."""
    before = find_judge(project, request.GET["from"]) if request.GET.get("from") else None
    initial = {} if before is None else dict(before.options)
    if check := find_numbered_run(project, "judge-check", request.GET.get("check", "")):
        initial = {**check.params["config"], **{name: check.params.get(name) for name in LIMITS}}
    if request.GET.get("examples_from"):
        initial |= {"examples_from": request.GET["examples_from"], "examples": initial.get("examples") or 4}
    return initial


@project_page(GET="read", POST="write")
def template(request: HttpRequest, project: Project) -> HttpResponse:
    """Show all templates with their versions; a POST saves a new version."""
    base = get_template(project, request.GET["from"]) if request.GET.get("from") else None
    initial = {} if base is None else {"kind": base.kind, "text": base.text}
    if base is not None and "@" in base.name:
        initial["name"] = base.name.partition("@")[0]
    form = TemplateForm(request.POST or None, initial=initial)
    if row := submit(form, partial(save_template, project=project, user=request.user)):
        messages.success(request, _("Saved as %(name)s.") % {"name": row})
        return redirect("scoring:judge-template", project.slug)
    context = {
        "project": project, "form": form, "built_in": list_templates(project),
        "versions": JudgeTemplate.objects.filter(project=project).select_related("created_by"),
        "may_write": can(user=request.user, project=project, need="write"),
    }  # fmt: skip
    return page(request, "scoring/judges/templates.html", context, status=422 if form.errors else 200)


@project_page(GET="read")
def answers(request: HttpRequest, project: Project, evaluator: str) -> StreamingHttpResponse:
    """The stored answers of a judge as JSON lines."""
    row = find_judge(project, evaluator)
    reader = make_reader(row)

    def lines() -> Iterator[bytes]:
        for answer in iterate_answer_rows(row, reader):
            yield json.dumps(answer, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"

    response = StreamingHttpResponse(lines(), content_type="application/jsonl")
    response.headers["Content-Disposition"] = f'attachment; filename="{row.slug}-answers.jsonl"'
    return response


@project_page(GET="read", POST="read")
def report(request: HttpRequest, project: Project, evaluator: str) -> HttpResponse:
    """The evaluator as one more rater. The test part of a judge is shown by POST only, and every look is counted."""
    score_set, found = make_report(
        project=project, user=request.user, evaluator=evaluator, given=request.GET, is_test=request.method == "POST"
    )
    context = {
        "project": project, "evaluator": score_set.evaluator, "score_set": score_set, "report": found,
        "confusion": list(zip(found["points"], found["confusion"], strict=False)),
        "aspects": list_aspects(project, rated=True),
    }  # fmt: skip
    return page(request, "scoring/judges/report.html", context)
