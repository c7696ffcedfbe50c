"""What the API says about evaluators, scores and leaderboards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from evalapp.common.api.fields import Closed, OnePageSerializer, TextField

from ..live.bounds import MOST_OF_ALL, MOST_OF_ONE, count_pair_characters
from ..models import Evaluator, Score
from ..selectors.score_sets import made_of
from ..selectors.training import card_of, files_of


class OptionSerializer(serializers.Serializer):
    name = serializers.CharField()
    type = serializers.ChoiceField(choices=["bool", "int", "float", "str"])
    default = serializers.JSONField(allow_null=True)
    help = serializers.CharField()
    choices = serializers.ListField(child=serializers.CharField())
    advanced = serializers.BooleanField()


class CatalogueEntrySerializer(serializers.Serializer):
    """A line of the catalogue: what can be applied by name."""

    name = serializers.CharField()
    kind = serializers.CharField(help_text="sentinel, baseline or trained")
    summary = serializers.CharField()
    needs = serializers.ListField(child=serializers.CharField())
    level = serializers.CharField()
    scale = serializers.ListField(child=serializers.FloatField(allow_null=True))
    profiles = serializers.ListField(child=serializers.CharField())
    options = OptionSerializer(many=True)
    learns = serializers.BooleanField(help_text="It must be trained before it can be applied.")
    aspect = serializers.ChoiceField(choices=["none", "one", "many"], help_text="How many aspects it learns.")
    train_needs = serializers.ListField(child=serializers.CharField())
    train_options = OptionSerializer(many=True)
    profile_defaults = serializers.DictField(child=serializers.DictField())
    citation = serializers.CharField()


class CatalogueSerializer(OnePageSerializer):
    results = CatalogueEntrySerializer(many=True)


class ScoreSetSerializer(serializers.Serializer):
    """The scores of an evaluator under one signature; `stale` says why they are out of date, or is empty."""

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
    """One output's score; a null value is undefined and `note` says why. `in_training`: the evaluator learned from
    this item's group, so that the score is no evidence of how good it is."""

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


class EstimateSerializer(serializers.Serializer):
    """A figure with its 95 % interval. A null value is undefined and `note` says why."""

    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField()
    note = serializers.CharField(allow_blank=True)


class SystemRowSerializer(EstimateSerializer):
    rank = serializers.IntegerField(
        allow_null=True,
        help_text="Null: nothing compares the system with the ranked ones. A rank without a value: no finite rating, "
        "because it never lost or never won; `note` says which.",
    )
    rank_low = serializers.IntegerField()
    rank_high = serializers.IntegerField()
    tier = serializers.IntegerField(help_text="Systems of one tier cannot be told apart.")
    system = serializers.CharField()
    step = serializers.IntegerField(allow_null=True)
    label = serializers.CharField()
    kind = serializers.CharField()
    n_ratings = serializers.IntegerField()
    simulated = serializers.FloatField(help_text="Share of simulated judgements.")
    shares = serializers.DictField(child=serializers.FloatField())
    sd = serializers.FloatField(
        allow_null=True, required=False, help_text="Of games by an evaluator: how far simulations differ."
    )


class StaleScoresSerializer(serializers.Serializer):
    """Scores in a table that are out of date: `reason` says why; applied again, only what changed is scored."""

    evaluator = serializers.CharField()
    aspect = serializers.CharField(allow_blank=True)
    references = serializers.CharField(allow_blank=True)
    reason = serializers.CharField()
    n_unscored = serializers.IntegerField(help_text="Outputs without a score.")
    final = serializers.BooleanField(
        required=False, help_text="Nothing brings it up to date: a part of this combination was deleted."
    )


class BoardSerializer(serializers.Serializer):
    """What both leaderboards carry. `is_current` false: the data changed, and `run` computes the table anew; games are
    played again when somebody asks for them. `stale`: a table that is current may stand on scores that are not."""

    project = serializers.CharField()
    kind = serializers.CharField()
    aspect = serializers.CharField(allow_blank=True)
    ratings = serializers.CharField(allow_blank=True)
    systems = serializers.CharField()
    signature = serializers.CharField()
    n_items = serializers.IntegerField()
    n_simulated = serializers.IntegerField()
    counted = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="What counts, and what a figure can reach: sentences."
    )
    note = serializers.CharField(allow_blank=True)
    computed_at = serializers.DateTimeField()
    is_current = serializers.BooleanField()
    run = serializers.IntegerField(allow_null=True)
    stale = StaleScoresSerializer(many=True, required=False)
    failed = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Figures that an internal error left out."
    )


class SystemsBoardSerializer(BoardSerializer):
    method = serializers.CharField()
    by = serializers.CharField(allow_null=True)
    n_clusters = serializers.IntegerField()
    n_raters = serializers.IntegerField(allow_null=True)
    totals = serializers.DictField(child=serializers.IntegerField())
    groups = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField()),
        help_text="Runs of neighbours in the table none of which can be told from another.",
    )
    extras = serializers.DictField(
        help_text="What only this method has: connectivity, the tie parameter, shares of ties and of both bad, biases; "
        "of games by an evaluator `verdicts`, `swap_consistency`, `converged`, `people` (how far the order is theirs)."
    )
    findings = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Sentences, with figures."
    )
    rows = SystemRowSerializer(many=True)


class WholeSerializer(serializers.Serializer):
    """The same figures over all rated outputs, training data included; null where nothing was left out."""

    pearson = EstimateSerializer()
    spearman = EstimateSerializer()
    kendall = EstimateSerializer()
    n = serializers.IntegerField()


class AccuracySerializer(EstimateSerializer):
    """Accuracy of pairs of outputs within items, ties calibrated; `epsilon` is the threshold that was found."""

    epsilon = serializers.FloatField(allow_null=True, required=False)
    cross_validated = EstimateSerializer(allow_null=True, required=False)


class TestSerializer(serializers.Serializer):
    """All evaluators against each other: one-sided p that the row's is better than the column's, in the order of
    `names`; `p_holm`: two-sided p that the row's, the better one, differs from the column's, adjusted for all pairs;
    null on and below the diagonal, where nothing is tested. `note` says why nothing was tested."""

    names = serializers.ListField(child=serializers.CharField())
    p = serializers.ListField(child=serializers.ListField(child=serializers.FloatField(allow_null=True)))
    p_holm = serializers.ListField(child=serializers.ListField(child=serializers.FloatField(allow_null=True)))
    signature = serializers.CharField()
    note = serializers.CharField(allow_blank=True)
    population = serializers.CharField(
        required=False, allow_blank=True, help_text="Which systems and items the test speaks about."
    )
    smallest_p = serializers.FloatField(
        required=False, allow_null=True,
        help_text="The smallest two-sided p that the test can give, before the adjustment; null: no limit.",
    )  # fmt: skip
    changed = serializers.CharField(
        required=False, allow_blank=True, help_text="What is different from the test of version 0.1.0."
    )


class EvaluatorRowSerializer(serializers.Serializer):
    evaluator = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.CharField()
    is_sentinel = serializers.BooleanField()
    score_set = serializers.IntegerField(allow_null=True)
    signature = serializers.CharField(allow_blank=True)
    scored_at = serializers.DateTimeField(allow_null=True)
    stale = serializers.CharField(
        allow_blank=True, required=False, help_text="Why its scores are out of date, or empty."
    )
    n_unscored = serializers.IntegerField(required=False, help_text="Outputs without a score, rated or not.")
    pearson = EstimateSerializer()
    spearman = EstimateSerializer()
    kendall = EstimateSerializer()
    n = serializers.IntegerField()
    n_missing = serializers.IntegerField()
    n_items = serializers.IntegerField()
    n_systems = serializers.IntegerField()
    n_in_training = serializers.IntegerField(help_text="Rated outputs it learned from; they count in no figure.")
    accuracy = AccuracySerializer(required=False, help_text="At the level of outputs.")
    pa = EstimateSerializer(required=False, help_text="At the level of systems: pairs ordered as by people.")
    spa = EstimateSerializer(required=False, help_text="At the level of systems: soft pairwise accuracy.")
    calibrated = EstimateSerializer(
        required=False,
        help_text="At the level of dialogues: Spearman’s correlation of its means of the systems with people’s, the "
        "raters’ leniency taken out.",
    )
    values = serializers.ListField(
        child=serializers.FloatField(allow_null=True), required=False,
        help_text="Against a ranking: the evaluator’s value of each system that has one in `scores`, in their order.",
    )  # fmt: skip
    letters = serializers.CharField(
        allow_blank=True, help_text="Evaluators that share a letter are not significantly different."
    )
    cluster = serializers.IntegerField(allow_null=True, help_text="Rank cluster: a new one begins where one is beaten.")
    corrected = EstimateSerializer(allow_null=True, help_text="The coefficient divided by the noise ceiling.")
    whole = WholeSerializer(allow_null=True)
    note = serializers.CharField(allow_blank=True)


class PeopleScoreSerializer(EstimateSerializer):
    """The value of a system that people's comparisons give."""

    label = serializers.CharField()


class EvaluatorsBoardSerializer(BoardSerializer):
    people = serializers.CharField(help_text="What evaluators are compared with: ratings, or a ranking of the systems.")
    scores = PeopleScoreSerializer(many=True, required=False, help_text="Of a ranking: people’s values, best first.")
    level = serializers.CharField()
    grouping = serializers.CharField()
    references = serializers.CharField()
    evaluators = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Those that were chosen; empty: all are compared."
    )
    coefficient = serializers.CharField()
    test = TestSerializer()
    ceiling = EstimateSerializer(help_text="The highest coefficient that is possible with these raters’ means.")
    n_outputs = serializers.IntegerField()
    n_excluded = serializers.IntegerField(help_text="Rated outputs left out: some evaluator learned from their group.")
    n_ratings = serializers.IntegerField()
    n_raters = serializers.IntegerField()
    n_systems = serializers.IntegerField()
    n_uncommon = serializers.IntegerField(
        required=False, help_text="At the system level: rated outputs left out, since some evaluator has no score."
    )
    population = serializers.CharField(
        required=False, allow_blank=True, help_text="Which systems and items the intervals speak about."
    )
    coverage = serializers.CharField(
        required=False, allow_blank=True, help_text="Where intervals hold the truth less, or more, often than they say."
    )
    rows = EvaluatorRowSerializer(many=True)


class FurtherRowSerializer(serializers.Serializer):
    """An evaluator with a cell for every column; of a part of the items `raw`, `shrunken` and `weight`."""

    evaluator = serializers.CharField()
    kind = serializers.CharField()
    is_sentinel = serializers.BooleanField()
    signature = serializers.CharField(allow_blank=True)
    cells = serializers.ListField(child=serializers.DictField(allow_null=True))


class FurtherBoardSerializer(BoardSerializer):
    """A table with a cell for every evaluator and column: parts of the items, aspects, or evaluators again."""

    coefficient = serializers.CharField()
    references = serializers.CharField()
    evaluators = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Those that were chosen; empty: all are compared."
    )
    key = serializers.CharField(required=False, help_text="Of slices: the key of the items’ meta.")
    parts = serializers.ListField(child=serializers.DictField(), required=False, help_text="Of slices: name and n.")
    aspects = serializers.ListField(child=serializers.DictField(), required=False, help_text="Of aspects: the columns.")
    rows = FurtherRowSerializer(many=True)


class PairsRowSerializer(FurtherRowSerializer):
    """An evaluator; its cells in the order of the table's `columns`, that of `length` has none less its own."""

    letters = serializers.CharField(
        allow_blank=True, help_text="Evaluators that share a letter are not significantly different."
    )
    cluster = serializers.IntegerField(allow_null=True, help_text="Rank cluster: a new one begins where one is beaten.")
    n = serializers.IntegerField(help_text="Decided pairs with both scores.")
    n_missing = serializers.IntegerField(help_text="Pairs without one of the two scores.")
    equal = serializers.FloatField(allow_null=True, help_text="Share of decided pairs whose two scores are equal.")
    n_in_training = serializers.IntegerField()


@extend_schema_field(
    {"type": "array", "items": {"allOf": [{"$ref": "#/components/schemas/Estimate"}], "nullable": True}}
)
class EstimatesField(serializers.ListField):
    """Estimates, null where there is none; of a list the document would leave the null out."""

    child = EstimateSerializer(allow_null=True)


class PairsBoardSerializer(BoardSerializer):
    """Evaluators on pairs of outputs that people compared. `columns`: decided pairs, less length, all pairs; `ceiling`:
    what one person reaches against the others, in the same order; `by_lot`: all pairs right by calling every one tied
    or drawing the better text, whichever is more."""

    references = serializers.CharField()
    evaluators = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Those that were chosen; empty: all are compared."
    )
    columns = serializers.ListField(child=serializers.DictField())
    ceiling = EstimatesField()
    by_lot = serializers.FloatField(allow_null=True)
    shorter = serializers.BooleanField(
        required=False, help_text="Less length is less the share of the shorter text, which people prefer here."
    )
    test = TestSerializer()
    n_pairs = serializers.IntegerField()
    n_decided = serializers.IntegerField()
    n_tied = serializers.IntegerField()
    n_split = serializers.IntegerField(help_text="Pairs without one most frequent verdict, which count nowhere.")
    n_outputs = serializers.IntegerField()
    n_excluded = serializers.IntegerField(help_text="Comparisons left out: some evaluator learned from their groups.")
    n_ratings = serializers.IntegerField(help_text="Judgements behind the pairs.")
    n_raters = serializers.IntegerField()
    n_systems = serializers.IntegerField()
    rows = PairsRowSerializer(many=True)


class PendingSerializer(serializers.Serializer):
    """A large table that nobody has computed yet: ask again when the run has ended."""

    run = serializers.IntegerField()
    detail = serializers.CharField()


class ArtefactFileSerializer(serializers.Serializer):
    name = serializers.CharField()
    bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    url = serializers.SerializerMethodField()

    def get_url(self, file: Any) -> str:
        evaluator = self.context["evaluator"]
        path = reverse("api-trained-file", args=[evaluator.project.slug, evaluator.slug, file.name])
        return str(self.context["request"].build_absolute_uri(path))


#: What the record of one that came with an export, without its folder, does not say.
UNRECORDED = {"profile": "", "aspects": [], "folds": 0, "models": [], "encoder": None, "choice": {}}


class TrainedSerializer(serializers.ModelSerializer):
    """A trained evaluator as it stands in lists."""

    profile = serializers.CharField(source="record.profile")
    aspects = serializers.JSONField(source="record.aspects", help_text="The aspects it learned.")
    folds = serializers.IntegerField(source="record.folds", help_text="0: one model.")

    class Meta:
        model = Evaluator
        fields = ["id", "slug", "name", "state", "signature", "profile", "aspects", "folds", "run", "created_at"]
        read_only_fields = fields

    def to_representation(self, instance: Evaluator) -> dict[str, Any]:
        instance.record = {**UNRECORDED, **instance.record}
        found: dict[str, Any] = super().to_representation(instance)
        return found


class TrainedDetailSerializer(TrainedSerializer):
    """One trained evaluator with its options, the record of each model, its card and its files."""

    models = serializers.JSONField(source="record.models")
    encoder = serializers.JSONField(source="record.encoder", allow_null=True)
    choice = serializers.JSONField(source="record.choice", help_text="Which part of the project it learned from.")
    part_of = serializers.SerializerMethodField(help_text="Combinations that could not be renewed without it.")
    card = serializers.SerializerMethodField()
    files = serializers.SerializerMethodField()

    class Meta(TrainedSerializer.Meta):
        fields = [
            *TrainedSerializer.Meta.fields, "damage", "options", "encoder", "choice", "models", "part_of", "card",
            "files",
        ]  # fmt: skip
        read_only_fields = fields

    def get_part_of(self, evaluator: Evaluator) -> list[str]:
        return [row.slug for row in made_of(evaluator.project, evaluator.slug)]

    def get_card(self, evaluator: Evaluator) -> str:
        return card_of(evaluator)

    @extend_schema_field(ArtefactFileSerializer(many=True))
    def get_files(self, evaluator: Evaluator) -> Any:
        context = {**self.context, "evaluator": evaluator}
        return ArtefactFileSerializer(files_of(evaluator), many=True, context=context).data


#: Where what somebody sends beside the texts belongs.
_OF_SCORING = {
    "aspect": 'The aspect is an option, of evaluators that learned several: {"options": {"aspect": "..."}}.',
    "project": "The project stands in the address: ?project=SLUG.",
}


def _text() -> serializers.CharField:
    return TextField(allow_blank=True, trim_whitespace=False, max_length=200_000)


def _texts(**rest: Any) -> serializers.ListField:
    return serializers.ListField(child=_text(), max_length=1000, **rest)


def _check_cost(costs: Sequence[int], what: str) -> None:
    """Refuse what would keep the one worker from everybody else."""
    if costs and max(costs) > MOST_OF_ONE:
        raise serializers.ValidationError(
            f"At most {MOST_OF_ONE:,} characters may be read for {what}, each reference beside text and context; this "
            f"needs {max(costs):,}. Shorten it, or apply the evaluator to the project, which has no such limit."
        )
    if sum(costs) > MOST_OF_ALL:
        raise serializers.ValidationError(
            f"At most {MOST_OF_ALL:,} characters may be read in a request, each reference beside text and context; "
            f"these need {sum(costs):,}. Send fewer at a time."
        )


class PairSerializer(Closed):
    """A text with what it may be measured against."""

    elsewhere = _OF_SCORING
    text = _text()
    context = _texts(required=False)
    references = _texts(required=False)


class OnlineRequestSerializer(Closed):
    """Texts to be scored. For one text at most 200,000 characters are read, each reference beside text and context; in
    a request 2,000,000."""

    elsewhere = _OF_SCORING
    pairs = serializers.ListField(child=PairSerializer(), min_length=1, max_length=64)
    options = serializers.DictField(required=False, help_text="Options of scoring, as the catalogue lists them.")

    def validate_pairs(self, pairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        _check_cost([count_pair_characters(pair) for pair in pairs], "a text")
        return pairs


class OnlineAnswerSerializer(serializers.Serializer):
    """Scores in the order of the pairs; null is undefined and `reasons` says why."""

    signature = serializers.CharField()
    scores = serializers.ListField(child=serializers.FloatField(allow_null=True))
    reasons = serializers.ListField(child=serializers.CharField(allow_blank=True))
    notes = serializers.ListField(child=serializers.CharField())


class ComparedPairSerializer(Closed):
    """Two texts for one context."""

    elsewhere = _OF_SCORING
    a = _text()
    b = _text()
    context = _texts(required=False)


class ComparisonRequestSerializer(Closed):
    """Pairs to be compared. For one pair at most 200,000 characters are read, the context beside each text; in a
    request 2,000,000."""

    elsewhere = _OF_SCORING
    pairs = serializers.ListField(child=ComparedPairSerializer(), min_length=1, max_length=64)
    options = serializers.DictField(required=False, help_text="Options of scoring, as the catalogue lists them.")

    def validate_pairs(self, pairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        _check_cost([count_pair_characters(pair) for pair in pairs], "a pair")
        return pairs


class ProbabilitiesSerializer(serializers.Serializer):
    better = serializers.FloatField()
    tie = serializers.FloatField()
    worse = serializers.FloatField()


class ComparisonAnswerSerializer(serializers.Serializer):
    """Verdicts on `a` in the order of the pairs: 1 better than `b`, 0 neither, -1 worse; each pair is read in both
    orders and the mean decides, where the evaluator does so (`swap_consistency` is null where it does not)."""

    signature = serializers.CharField()
    verdicts = serializers.ListField(child=serializers.IntegerField(min_value=-1, max_value=1))
    probabilities = ProbabilitiesSerializer(many=True)
    swap_consistency = serializers.FloatField(allow_null=True)
    notes = serializers.ListField(child=serializers.CharField())


class ReliabilityRequestSerializer(Closed):
    """A set of references for a context. At most 200,000 characters are read, the context beside each reference."""

    elsewhere = _OF_SCORING
    context = _texts()
    references = _texts()
    options = serializers.DictField(required=False)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        _check_cost([count_pair_characters(given)], "a set of references")
        return given


class ReliabilityAnswerSerializer(serializers.Serializer):
    signature = serializers.CharField()
    reliability = serializers.FloatField(allow_null=True)
