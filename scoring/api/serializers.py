"""What the API says about evaluators, scores and leaderboards."""

from __future__ import annotations

from rest_framework import serializers

from ..models import Score


class OptionSerializer(serializers.Serializer):
    name = serializers.CharField()
    type = serializers.ChoiceField(choices=["bool", "int", "float", "str"])
    default = serializers.JSONField(allow_null=True)
    help = serializers.CharField()
    choices = serializers.ListField(child=serializers.CharField())


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
    citation = serializers.CharField()


class CatalogueSerializer(serializers.Serializer):
    results = CatalogueEntrySerializer(many=True)


class ScoreSetSerializer(serializers.Serializer):
    """The scores of an evaluator under one signature; `stale` says why they are out of date, or is empty."""

    id = serializers.IntegerField(source="score_set.pk")
    evaluator = serializers.CharField(source="score_set.evaluator.slug")
    name = serializers.CharField(source="score_set.evaluator.name")
    kind = serializers.CharField(source="score_set.evaluator.kind")
    options = serializers.JSONField(source="score_set.evaluator.options")
    references = serializers.CharField(source="score_set.references", allow_blank=True)
    signature = serializers.CharField(source="score_set.full_signature")
    run = serializers.IntegerField(source="score_set.run_id", allow_null=True)
    created_at = serializers.DateTimeField(source="score_set.created_at")
    scored_at = serializers.DateTimeField(source="score_set.scored_at", allow_null=True)
    stale = serializers.CharField(allow_blank=True)
    n_scores = serializers.IntegerField(source="score_set.n_scores")
    n_undefined = serializers.IntegerField(source="score_set.n_undefined")
    n_truncated = serializers.IntegerField(source="score_set.n_truncated")
    n_empty = serializers.IntegerField(source="score_set.n_empty")
    n_duplicate = serializers.IntegerField(source="score_set.n_duplicate")
    systems = serializers.JSONField(source="score_set.systems")
    summary = serializers.JSONField(source="score_set.summary")


class EvaluatorsSerializer(serializers.Serializer):
    results = ScoreSetSerializer(many=True)


class ScoreSerializer(serializers.ModelSerializer):
    """One output's score; a null value is undefined and `note` says why."""

    item = serializers.CharField(source="output.item.key")
    system = serializers.CharField(source="output.system.name")
    step = serializers.IntegerField(source="output.step", allow_null=True)
    evaluator = serializers.CharField(source="score_set.evaluator.slug")
    signature = serializers.CharField(source="score_set.full_signature")

    class Meta:
        model = Score
        fields = ["id", "item", "system", "step", "evaluator", "value", "note", "signature"]
        read_only_fields = fields


class EstimateSerializer(serializers.Serializer):
    """A figure with its 95 % interval. A null value is undefined and `note` says why."""

    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField()
    note = serializers.CharField(allow_blank=True)


class SystemRowSerializer(EstimateSerializer):
    rank = serializers.IntegerField(allow_null=True)
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


class BoardSerializer(serializers.Serializer):
    """What both leaderboards carry. `is_current` false: the data changed, and `run` computes the table anew."""

    project = serializers.CharField()
    kind = serializers.CharField()
    aspect = serializers.CharField(allow_blank=True)
    ratings = serializers.CharField()
    systems = serializers.CharField()
    signature = serializers.CharField()
    n_items = serializers.IntegerField()
    n_simulated = serializers.IntegerField()
    note = serializers.CharField(allow_blank=True)
    computed_at = serializers.DateTimeField()
    is_current = serializers.BooleanField()
    run = serializers.IntegerField(allow_null=True)


class SystemsBoardSerializer(BoardSerializer):
    method = serializers.CharField()
    by = serializers.CharField(allow_null=True)
    n_clusters = serializers.IntegerField()
    n_raters = serializers.IntegerField(allow_null=True)
    totals = serializers.DictField(child=serializers.IntegerField())
    rows = SystemRowSerializer(many=True)


class EvaluatorRowSerializer(serializers.Serializer):
    evaluator = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.CharField()
    is_sentinel = serializers.BooleanField()
    score_set = serializers.IntegerField(allow_null=True)
    signature = serializers.CharField(allow_blank=True)
    scored_at = serializers.DateTimeField(allow_null=True)
    pearson = EstimateSerializer()
    spearman = EstimateSerializer()
    kendall = EstimateSerializer()
    n = serializers.IntegerField()
    n_missing = serializers.IntegerField()
    n_items = serializers.IntegerField()
    n_systems = serializers.IntegerField()
    note = serializers.CharField(allow_blank=True)


class EvaluatorsBoardSerializer(BoardSerializer):
    level = serializers.CharField()
    grouping = serializers.CharField()
    references = serializers.CharField()
    n_outputs = serializers.IntegerField()
    n_ratings = serializers.IntegerField()
    n_raters = serializers.IntegerField()
    n_systems = serializers.IntegerField()
    rows = EvaluatorRowSerializer(many=True)


class PendingSerializer(serializers.Serializer):
    """A large table that nobody has computed yet: ask again when the run has ended."""

    run = serializers.IntegerField()
    detail = serializers.CharField()
