"""Serializers of evaluators and scores."""

from collections.abc import Sequence
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from annotation.models.data import ORIGINAL
from evalapp.common.api.fields import ChoiceField, OnePageSerializer, StrictSerializer, TextField
from evalapp.common.api.runs import RunSerializer

from ..live.bounds import MOST_OF_ALL, MOST_OF_ONE, count_pair_characters
from ..models import Evaluator, Score
from ..selectors.score_sets import list_combinations
from ..selectors.training import list_files, read_card
from ..services.several import MOST_EVALUATORS, OUTCOMES


class TranslatedField(serializers.CharField):
    """A text of the library in the language of the request."""

    def to_representation(self, value: str) -> str:
        return _(value)


class OptionSerializer(serializers.Serializer):
    name = serializers.CharField()
    type = ChoiceField(choices=["bool", "int", "float", "str"])
    default = serializers.JSONField(allow_null=True)
    help = TranslatedField()
    choices = serializers.ListField(child=serializers.CharField())
    advanced = serializers.BooleanField()


class SeveralSerializer(StrictSerializer):
    """Evaluators to apply together."""

    evaluators = serializers.ListField(child=TextField(max_length=200), max_length=MOST_EVALUATORS, min_length=1)
    references = TextField(max_length=200, default=ORIGINAL)
    dry_run = serializers.BooleanField(default=False)


class PlannedScoresSerializer(serializers.Serializer):
    """What is done for an evaluator."""

    evaluator = serializers.CharField()
    outcome = ChoiceField(
        choices=OUTCOMES,
        help_text=gettext_lazy("What was scored before: new: nothing; changed: other texts; current: everything."),
    )
    references = serializers.CharField()
    n_outputs = serializers.IntegerField(help_text=gettext_lazy("At most this many outputs are scored."))
    seconds = serializers.FloatField()
    is_measured = serializers.BooleanField(help_text=gettext_lazy("The time is that of its last run here."))
    why = serializers.CharField(help_text=gettext_lazy("Why it is refused."))


class SeveralAnswerSerializer(serializers.Serializer):
    """The queued runs, and what is done for each evaluator."""

    runs = RunSerializer(many=True)
    plan = PlannedScoresSerializer(many=True)


class CatalogueEntrySerializer(serializers.Serializer):
    """An entry of the catalogue."""

    name = serializers.CharField()
    kind = serializers.CharField(help_text=gettext_lazy("sentinel, baseline or trained"))
    summary = TranslatedField()
    needs = serializers.ListField(child=serializers.CharField())
    level = serializers.CharField()
    scale = serializers.ListField(child=serializers.FloatField(allow_null=True))
    profiles = serializers.ListField(child=serializers.CharField())
    options = OptionSerializer(many=True)
    learns = serializers.BooleanField(help_text=gettext_lazy("It must be trained before it can be applied."))
    aspect = ChoiceField(choices=["none", "one", "many"], help_text=gettext_lazy("How many aspects it learns."))
    train_needs = serializers.ListField(child=serializers.CharField())
    train_options = OptionSerializer(many=True)
    profile_defaults = serializers.SerializerMethodField()
    shipped = serializers.SerializerMethodField(
        help_text=gettext_lazy("Names of evaluators of this method that come trained: apply them as they are.")
    )
    citation = serializers.CharField()
    plugin = serializers.CharField(help_text=gettext_lazy("The package that brings it, with its version."))

    @extend_schema_field(serializers.DictField(child=serializers.DictField()))
    def get_profile_defaults(self, entry: Any) -> dict[str, Any]:
        return {name: entry.train_defaults(name) for name in entry.profiles} if entry.learns else {}

    def get_shipped(self, entry: Any) -> list[str]:
        from scoring.ml.shipped import list_shipped

        return list_shipped(entry.name)


class CatalogueSerializer(OnePageSerializer):
    results = CatalogueEntrySerializer(many=True)


class ScoreSetSerializer(serializers.Serializer):
    """The scores of an evaluator with one signature; `stale` says why they are outdated, or is empty."""

    id = serializers.IntegerField(source="score_set.pk")
    evaluator = serializers.CharField(source="score_set.evaluator.slug")
    name = serializers.CharField(source="score_set.evaluator.name")
    kind = serializers.CharField(source="score_set.evaluator.kind")
    options = serializers.JSONField(source="score_set.evaluator.options")
    references = serializers.CharField(source="score_set.references", allow_blank=True)
    aspect = serializers.CharField(source="score_set.aspect", allow_blank=True)
    signature = serializers.CharField(source="score_set.full_signature")
    run = serializers.IntegerField(source="score_set.run_id", allow_null=True)
    created_at = serializers.DateTimeField(source="score_set.created_at")
    scored_at = serializers.DateTimeField(source="score_set.scored_at", allow_null=True)
    stale = serializers.CharField(allow_blank=True)
    n_scores = serializers.IntegerField(source="score_set.n_scores")
    n_undefined = serializers.IntegerField(source="score_set.n_undefined")
    n_truncated = serializers.IntegerField(source="score_set.n_truncated")
    n_unknown = serializers.IntegerField(source="score_set.n_unknown")
    n_empty = serializers.IntegerField(source="score_set.n_empty")
    n_duplicate = serializers.IntegerField(source="score_set.n_duplicate")
    n_in_training = serializers.IntegerField(source="score_set.n_in_training")
    systems = serializers.JSONField(source="score_set.systems")
    summary = serializers.JSONField(source="score_set.summary")


class EvaluatorsSerializer(OnePageSerializer):
    results = ScoreSetSerializer(many=True)


class ScoreSerializer(serializers.ModelSerializer):
    """The score of an output; a null value is undefined and `note` says why. `in_training`: the evaluator was trained
    on the item's group, so the score is no evidence of its quality."""

    item = serializers.CharField(source="output.item.key")
    system = serializers.CharField(source="output.system.name")
    step = serializers.IntegerField(source="output.step", allow_null=True)
    evaluator = serializers.CharField(source="score_set.evaluator.slug")
    aspect = serializers.CharField(source="score_set.aspect", allow_blank=True)
    signature = serializers.CharField(source="score_set.full_signature")

    class Meta:
        model = Score
        fields = ["id", "item", "system", "step", "evaluator", "aspect", "value", "note", "in_training", "signature"]
        read_only_fields = fields


class ArtefactFileSerializer(serializers.Serializer):
    name = serializers.CharField()
    bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    url = serializers.SerializerMethodField()

    def get_url(self, file: Any) -> str:
        evaluator = self.context["evaluator"]
        path = reverse("api-trained-file", args=[evaluator.project.slug, evaluator.slug, file.name])
        return str(self.context["request"].build_absolute_uri(path))


#: Defaults for evaluators from an export, whose record lacks these members.
UNRECORDED = {"profile": "", "aspects": [], "folds": 0, "models": [], "encoder": None, "choice": {}}


class TrainedSerializer(serializers.ModelSerializer):
    """A trained evaluator in lists."""

    profile = serializers.CharField(source="record.profile")
    aspects = serializers.JSONField(source="record.aspects", help_text=gettext_lazy("The aspects it was trained on."))
    folds = serializers.IntegerField(source="record.folds", help_text=gettext_lazy("0: one model."))

    class Meta:
        model = Evaluator
        fields = ["id", "slug", "name", "state", "signature", "profile", "aspects", "folds", "run", "created_at"]
        read_only_fields = fields

    def to_representation(self, instance: Evaluator) -> dict[str, Any]:
        instance.record = {**UNRECORDED, **instance.record}
        representation: dict[str, Any] = super().to_representation(instance)
        return representation


class TrainedDetailSerializer(TrainedSerializer):
    """A trained evaluator with its options, records of its models, model card and files."""

    models = serializers.JSONField(source="record.models")
    encoder = serializers.JSONField(source="record.encoder", allow_null=True)
    choice = serializers.JSONField(
        source="record.choice", help_text=gettext_lazy("The part of the project used for training.")
    )
    part_of = serializers.SerializerMethodField(
        help_text=gettext_lazy("Combinations that cannot be renewed without it.")
    )
    card = serializers.SerializerMethodField()
    files = serializers.SerializerMethodField()

    class Meta(TrainedSerializer.Meta):
        fields = [
            *TrainedSerializer.Meta.fields, "damage", "options", "encoder", "choice", "models", "part_of", "card",
            "files",
        ]  # fmt: skip
        read_only_fields = fields

    def get_part_of(self, evaluator: Evaluator) -> list[str]:
        return [row.slug for row in list_combinations(evaluator.project, evaluator.slug)]

    def get_card(self, evaluator: Evaluator) -> str:
        return read_card(evaluator)

    @extend_schema_field(ArtefactFileSerializer(many=True))
    def get_files(self, evaluator: Evaluator) -> Any:
        context = {**self.context, "evaluator": evaluator}
        return ArtefactFileSerializer(list_files(evaluator), many=True, context=context).data


#: Hints for parameters in the wrong place.
_MISPLACED = {
    "aspect": gettext_lazy('The aspect is an option: {"options": {"aspect": "..."}}.'),
    "project": gettext_lazy("The project is a parameter of the address: ?project=SLUG."),
}


def _text() -> serializers.CharField:
    return TextField(allow_blank=True, trim_whitespace=False, max_length=200_000)


def _texts(**rest: Any) -> serializers.ListField:
    return serializers.ListField(child=_text(), max_length=1000, **rest)


def _check_cost(costs: Sequence[int], what: str) -> None:
    """Refuse requests that would block the worker for others."""
    if costs and max(costs) > MOST_OF_ONE:
        raise serializers.ValidationError(
            _(
                "A %(what)s may have at most %(limit)s characters, counting text and context for each reference; this "
                "one has %(n)s. Shorten it, or apply the evaluator to the project, which has no such limit."
            )
            % {"limit": f"{MOST_OF_ONE:,}", "what": what, "n": f"{max(costs):,}"}
        )
    if sum(costs) > MOST_OF_ALL:
        raise serializers.ValidationError(
            _(
                "A request may have at most %(limit)s characters, counting text and context for each reference; this "
                "one has %(n)s. Send fewer texts per request."
            )
            % {"limit": f"{MOST_OF_ALL:,}", "n": f"{sum(costs):,}"}
        )


class PairSerializer(StrictSerializer):
    """A text with context and references."""

    elsewhere = _MISPLACED
    text = _text()
    context = _texts(required=False)
    references = _texts(required=False)


class OnlineRequestSerializer(StrictSerializer):
    """Texts to score. The limits are 200,000 characters per text, counting text and context for each reference, and
    2,000,000 per request."""

    elsewhere = _MISPLACED
    pairs = serializers.ListField(child=PairSerializer(), min_length=1, max_length=64)
    options = serializers.DictField(required=False, help_text=gettext_lazy("Scoring options, as in the catalogue."))

    def validate_pairs(self, pairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        _check_cost([count_pair_characters(pair) for pair in pairs], _("text"))
        return pairs


class OnlineAnswerSerializer(serializers.Serializer):
    """Scores in the order of the pairs; null is undefined and `reasons` says why."""

    signature = serializers.CharField()
    scores = serializers.ListField(child=serializers.FloatField(allow_null=True))
    reasons = serializers.ListField(child=serializers.CharField(allow_blank=True))
    notes = serializers.ListField(child=serializers.CharField())


class ComparedPairSerializer(StrictSerializer):
    """Two texts for one context."""

    elsewhere = _MISPLACED
    a = _text()
    b = _text()
    context = _texts(required=False)


class ComparisonRequestSerializer(StrictSerializer):
    """Pairs to compare. The limits are 200,000 characters per pair, counting the context for each text, and 2,000,000
    per request."""

    elsewhere = _MISPLACED
    pairs = serializers.ListField(child=ComparedPairSerializer(), min_length=1, max_length=64)
    options = serializers.DictField(required=False, help_text=gettext_lazy("Scoring options, as in the catalogue."))

    def validate_pairs(self, pairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        _check_cost([count_pair_characters(pair) for pair in pairs], _("pair"))
        return pairs


class ProbabilitiesSerializer(serializers.Serializer):
    better = serializers.FloatField()
    tie = serializers.FloatField()
    worse = serializers.FloatField()


class ComparisonAnswerSerializer(serializers.Serializer):
    """Verdicts on `a` in the order of the pairs: 1 better than `b`, 0 neither, -1 worse. `swap_consistency` is null if
    the evaluator reads each pair in one order only."""

    signature = serializers.CharField()
    verdicts = serializers.ListField(child=serializers.IntegerField(min_value=-1, max_value=1))
    probabilities = ProbabilitiesSerializer(many=True)
    swap_consistency = serializers.FloatField(allow_null=True)
    notes = serializers.ListField(child=serializers.CharField())


class ReliabilityRequestSerializer(StrictSerializer):
    """References for a context. The limit is 200,000 characters, counting the context for each reference."""

    elsewhere = _MISPLACED
    context = _texts()
    references = _texts()
    options = serializers.DictField(required=False)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        _check_cost([count_pair_characters(given)], _("set of references"))
        return given


class ReliabilityAnswerSerializer(serializers.Serializer):
    signature = serializers.CharField()
    reliability = serializers.FloatField(allow_null=True)
