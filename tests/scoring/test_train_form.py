"""The form of a training: valid option values, and the parsed result."""

from __future__ import annotations

import pytest

from annotation.models import Aspect, Comparison, Dialogue, Rating, ReferenceSet
from evalapp.common.errors import BadInput, Fault
from scoring.forms.fields import ApplyForm, add_faults
from scoring.forms.train import TrainForm, data_from, describe_params, initial_from
from scoring.ml.registry import get_entry
from scoring.services.training import TrainingOptions, plan_params
from tests.factories import make_items, make_outputs, make_ratings

pytestmark = pytest.mark.django_db


def test_option_set_by_a_profile_may_be_none(cast):
    """Once, number fields did not accept "none", so all references, or training without early stopping, were only
    available elsewhere."""
    items = make_items(cast.project, 4)
    make_ratings(cast.project, make_outputs(cast.project, items))
    for name, option in (("shared-bert", "max_references"), ("ream", "patience"), ("adem", "patience")):
        entry = get_entry(name)
        plain = {"profile": "recommended", "aspect": "quality", "folds": 2, "seed": 13, "name": "", "references": ""}

        def params(value, entry=entry, option=option, plain=plain):
            form = TrainForm({**plain, f"option_{option}": value}, project=cast.project, entry=entry)
            assert form.is_valid(), form.errors
            return plan_params(cast.project, form.as_options())

        assert params("none")["options"][option] is None
        assert params("7")["options"][option] == 7
        assert params("")["options"][option] == entry.train_defaults("recommended")[option]
        again = initial_from(entry, params("none"))
        assert again[f"option_{option}"] == "none"
        assert params(again[f"option_{option}"])["options"][option] is None
        assert f"option_{option}" not in initial_from(entry, params(""))
        assert "Or write none." in str(TrainForm(project=cast.project, entry=entry)[f"option_{option}"].help_text)


def test_training_without_judgements_needs_no_aspect(cast):
    """`comparative` learns from human and machine texts in a project without judgements: once, the form required an
    aspect, and there was none to choose."""
    make_outputs(cast.project, make_items(cast.project, 4))
    entry = get_entry("comparative")
    asked = {"profile": "recommended", "folds": 2, "seed": 13, "name": ""}
    form = TrainForm(asked, project=cast.project, entry=entry)
    assert form.is_valid(), form.errors
    assert plan_params(cast.project, form.as_options())["aspect"] == ""
    assert not TrainForm(asked, project=cast.project, entry=get_entry("ream")).is_valid()
    make_ratings(cast.project, [])
    assert "no aspect has judgements yet" in str(TrainForm(project=cast.project, entry=entry)["aspect"])


ASKED = {"profile": "recommended", "folds": "2", "seed": "13", "name": ""}


@pytest.fixture
def judged(cast):
    """`quality` and `fluency` were rated, `style` compared, and `human-likeness` not judged."""
    outputs = make_outputs(cast.project, make_items(cast.project, 4))
    for name in ("quality", "fluency"):
        make_ratings(cast.project, outputs, name)
    style = Aspect.objects.create(project=cast.project, name="style", position=5)
    Aspect.objects.create(project=cast.project, name="human-likeness", position=6)
    Comparison.objects.create(
        project=cast.project, output_a=outputs[0], output_b=outputs[1], aspect=style, rater="r0", verdict="a"
    )
    return cast.project


def offered(project, name, field="aspect"):
    return [value for value, _ in TrainForm(project=project, entry=get_entry(name)).fields[field].choices]


def test_aspect_is_offered_only_with_usable_judgements(judged):
    assert offered(judged, "ream") == ["quality", "fluency"]
    assert offered(judged, "comparative") == ["quality", "fluency", "style"]
    assert offered(judged, "shared-bert", "aspects") == ["quality", "fluency"]


def list_errors(project, name, **options):
    with pytest.raises(BadInput) as refused:
        plan_params(project, TrainingOptions(name, **options))
    return {fault.field: fault.message for fault in refused.value.faults}


def test_aspect_is_required_at_once_if_several_were_judged(judged):
    """Once, the preselected choice failed the check, which took half a minute."""
    form = TrainForm(ASKED, project=judged, entry=get_entry("comparative"))
    assert list(form.errors) == ["aspect"]
    found = list_errors(judged, "comparative")
    assert list(found) == ["aspect"]
    assert found["aspect"].endswith(": quality, fluency, style.")
    assert plan_params(judged, TrainingOptions("comparative", options={"human": "no"}))["aspect"] == ""
    assert plan_params(judged, TrainingOptions("comparative", aspect="style"))["aspect"] == "style"
    said = list_errors(judged, "ream", aspect="human-likeness")["aspect"]
    assert "“human-likeness”" in said
    assert said.endswith(": quality, fluency.")
    assert "“style”" in list_errors(judged, "ream", aspect="style")["aspect"]
    found = list_errors(judged, "shared-bert", options={"aspects": "quality, style"})
    assert "“style”" in found["options.aspects"]


def test_other_choices_may_leave_one_aspect(judged):
    Rating.objects.filter(aspect__name="fluency", rater="r1").delete()
    Rating.objects.filter(aspect__name="fluency").update(rater="other")
    assert plan_params(judged, TrainingOptions("ream", raters=("r0", "r1")))["aspect"] == ""
    assert "fluency" in list_errors(judged, "ream", raters=("r0",), aspect="fluency")["aspect"]


def test_all_errors_are_reported_at_once(judged):
    options = {"metric": "nonsense", "sizes": "a,b", "negatives": "foo", "train_device": "foo", "nothing": 1}
    found = list_errors(judged, "ream", options=options, folds=99, seed=-1, systems=("nobody",), profile="paper")
    assert set(found) == {*(f"options.{name}" for name in options), "folds", "seed", "systems"}
    assert found["options.sizes"].startswith("sizes must be")
    assert "“a,b”" in found["options.sizes"]
    found = list_errors(judged, "ream", profile="printed", aspect="quality")
    assert list(found) == ["profile"]
    assert "recommended, paper" in found["profile"]


def test_service_errors_appear_at_the_form_fields(judged):
    form = TrainForm(ASKED, project=judged, entry=get_entry("shared-bert"))
    assert form.is_valid(), form.errors
    faults = [
        Fault("beta must be a number.", field="options.beta"),
        Fault("Nobody rated it.", field="aspect"),
        Fault("Wrong elsewhere.", field="elsewhere"),
    ]
    add_faults(form, BadInput("All of it.", faults=faults))
    assert dict(form.errors) == {
        "option_beta": ["Must be a number."],
        "aspects": ["Nobody rated it."],
        "__all__": ["Wrong elsewhere."],
    }
    assert form.faulty_groups == ["basic"]


def test_option_errors_are_reported_with_other_fields(judged):
    wrong = {**ASKED, "aspect": "quality", "name": "No Slug", "option_sizes": "a,b", "option_train_device": "foo"}
    form = TrainForm(wrong, project=judged, entry=get_entry("ream"))
    assert set(form.errors) == {"name", "option_sizes", "option_train_device"}
    (error,) = form.errors["option_sizes"]
    assert error.startswith("Must be")  # without the name, which is the label
    assert "“a,b”" in error
    assert form.faulty_groups == ["basic", "advanced"]


def test_jointly_learned_aspects_are_checkboxes(judged):
    entry = get_entry("shared-bert")
    assert {"aspect", "option_aspects"}.isdisjoint(TrainForm(project=judged, entry=entry).fields)
    form = TrainForm({**ASKED, "aspects": ["quality", "fluency"]}, project=judged, entry=entry)
    assert form.is_valid(), form.errors
    params = plan_params(judged, form.as_options())
    assert (params["aspect"], params["options"]["aspects"]) == ("", "quality,fluency")
    again = TrainForm(data_from(initial_from(entry, {**params, "name": ""})), project=judged, entry=entry)
    assert again.is_valid(), again.errors
    assert plan_params(judged, again.as_options()) == params


def test_only_relevant_fields_are_offered(judged):
    """`maude` learns only from dialogues: campaigns, raters and systems had no effect there."""
    Dialogue.objects.create(project=judged, key="d", turns=["hello", "hi"])
    ReferenceSet.objects.create(project=judged, name="more")
    data = {"references", "campaigns", "systems", "raters"}
    assert data.isdisjoint(TrainForm(project=judged, entry=get_entry("maude")).fields)
    assert {"references", "systems", "raters"} <= set(TrainForm(project=judged, entry=get_entry("ream")).fields)
    fields = set(TrainForm(project=judged, entry=get_entry("perception")).fields)
    assert {"references", "systems"} <= fields
    assert "raters" not in fields
    Dialogue.objects.all().delete()
    assert (
        "references" in TrainForm(project=judged, entry=get_entry("maude")).fields
    )  # with references it also uses contexts


def test_unselectable_values_are_not_offered(judged, settings):
    settings.ENCODERS = []
    form = TrainForm(project=judged, entry=get_entry("maude"))
    names = ["generator", "translator", "back translator", "paraphraser"]
    assert [label for label, *_ in form.lacking] == names
    assert {
        "encoder",
        "option_generator",
        "option_translator",
        "option_back_translator",
        "option_paraphraser",
    }.isdisjoint(form.fields)
    apply = ApplyForm(project=judged, entry=get_entry("bleurt"))
    assert [option.name for option in apply.lacking] == ["encoder"]
    assert "option_encoder" not in apply.fields
    settings.ENCODERS = ["mine"]
    form = TrainForm(project=judged, entry=get_entry("maude"))
    assert not form.lacking
    assert [value for value, _ in form.fields["option_generator"].choices] == ["", "mine"]
    assert [value for value, _ in form.fields["encoder"].choices] == ["", "mine"]
    apply = ApplyForm({}, project=judged, entry=get_entry("bleurt"))
    assert [value for value, _ in apply.fields["option_encoder"].choices] == ["mine"]
    assert "option_encoder" in apply.errors


def test_metric_is_chosen_from_available_ones(judged):
    assert offered(judged, "ream", "option_metric")[:3] == ["", "bleu-star", "token-f1"]


def test_option_has_one_label(judged):
    for name in ("ream", "comparative"):
        entry = get_entry(name)
        train, apply = (form(project=judged, entry=entry) for form in (TrainForm, ApplyForm))
        for form in (train, apply):
            assert not [field.label for field in form if "_" in field.label]
    assert train.fields["option_max_length"].label == "max length"


def test_name_field_describes_valid_names(judged):
    for name in ("Mine", "my evaluator", "-mine"):
        form = TrainForm({**ASKED, "aspect": "quality", "name": name}, project=judged, entry=get_entry("ream"))
        said = "Use lower-case letters, digits and hyphens, and begin with a letter or digit."
        assert form.errors == {"name": [said]}


def test_checked_options_are_shown_in_words(judged):
    options = TrainingOptions(
        "ream", aspect="quality", folds=5, systems=("sys-a",), options={"sizes": "1,3", "patience": None}
    )
    assert describe_params(get_entry("ream"), {**plan_params(judged, options), "name": "mine"}) == [
        ("Profile", "recommended"), ("Aspect", "quality"), ("Folds", "5"), ("Seed", "13"), ("Name", "mine"),
        ("Apply after training", "no"), ("Systems", "sys-a"), ("sizes", "1,3"), ("patience", "none"),
    ]  # fmt: skip


def test_training_prefills_the_form(judged):
    entry = get_entry("ream")
    params = plan_params(judged, TrainingOptions("ream", aspect="quality", folds=3, options={"heads": 2}))
    found = initial_from(entry, {**params, "slug": "ream-7"})
    assert (found["name"], found["folds"], found["option_heads"]) == ("", 3, 2)
    assert initial_from(entry, {**params, "slug": "mine"})["name"] == "mine"
