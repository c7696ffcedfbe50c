"""The report of an evaluator as one more rater, for programs. Judges are runs: `POST projects/{slug}/runs/` with the
kind `judge`, and `judge-check` for the dry check."""

from django.utils.translation import gettext_lazy
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalapp.accounts.selectors import get_project

from ..services.judges import make_report

_PARAMETERS = [
    OpenApiParameter("set", str, description="A score set of the evaluator; the newest by default."),
    OpenApiParameter("aspect", str, description="The rated aspect; that of the scores, or the first, by default."),
    OpenApiParameter("epsilon", str, description="The cost of a person in the alternative annotator test, 0.1."),
]


class ReportedEstimateSerializer(serializers.Serializer):
    """A value with the ends of its 95 % interval; null is undefined, and `note` says why."""

    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField()
    note = serializers.CharField(allow_blank=True)


class SystemBiasSerializer(ReportedEstimateSerializer):
    system = serializers.CharField()


class BinSerializer(serializers.Serializer):
    score = serializers.FloatField()
    rating = serializers.FloatField()
    n = serializers.IntegerField()


class RaterAdvantageSerializer(serializers.Serializer):
    rater = serializers.CharField()
    n = serializers.IntegerField()
    evaluator_better = serializers.FloatField()
    rater_better = serializers.FloatField()
    p = serializers.FloatField(allow_null=True)
    rejected = serializers.BooleanField()


class AlternativeTestSerializer(serializers.Serializer):
    """The alternative annotator test; the evaluator `passes` from a winning rate of 1/2."""

    raters = RaterAdvantageSerializer(many=True)
    winning_rate = serializers.FloatField(allow_null=True)
    advantage = serializers.FloatField(allow_null=True)
    epsilon = serializers.FloatField()
    passes = serializers.BooleanField()
    note = serializers.CharField(allow_blank=True)


class OtherJudgeSerializer(serializers.Serializer):
    """Another judge of the aspect, compared on the `n` outputs that both have scored."""

    evaluator = serializers.CharField()
    template = serializers.CharField()
    model = serializers.CharField()
    n = serializers.IntegerField()
    pearson = serializers.FloatField(allow_null=True)
    mean_difference = serializers.FloatField(allow_null=True)
    mean_absolute = serializers.FloatField(allow_null=True)


class EvaluatorReportSerializer(serializers.Serializer):
    """The members after `others` are those of judges."""

    evaluator = serializers.CharField()
    aspect = serializers.CharField()
    part = serializers.ChoiceField(choices=["all", "development", "test"])
    signature = serializers.CharField()
    undefined = serializers.FloatField(
        allow_null=True, help_text=gettext_lazy("Share of the outputs with an undefined score.")
    )
    n_outputs = serializers.IntegerField()
    n_raters = serializers.IntegerField()
    n_chosen = serializers.IntegerField(
        help_text=gettext_lazy("Ratings that are left out: their outputs were chosen by expected error.")
    )
    n_simulated = serializers.IntegerField(help_text=gettext_lazy("Ratings that do not come from people."))
    scaling = serializers.ListField(
        child=serializers.FloatField(), allow_null=True,
        help_text=gettext_lazy("Slope and intercept that bring scores to the scale of people; null: they are on it."),
    )  # fmt: skip
    alpha_without = ReportedEstimateSerializer()
    alpha_with = ReportedEstimateSerializer()
    correlation = ReportedEstimateSerializer(
        help_text=gettext_lazy("Spearman's correlation of scores with mean ratings.")
    )
    decided = ReportedEstimateSerializer(
        allow_null=True,
        help_text=gettext_lazy("Share of decided pairs that a comparing judge orders as people did; null for others."),
    )
    mean_difference = ReportedEstimateSerializer()
    mean_absolute = ReportedEstimateSerializer()
    length = ReportedEstimateSerializer(
        help_text=gettext_lazy("Spearman's correlation of score - mean rating with the length of the text.")
    )
    alternative = AlternativeTestSerializer()
    points = serializers.ListField(child=serializers.FloatField())
    confusion = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField()),
        help_text=gettext_lazy("Outputs by the point nearest to their mean rating (rows) and to their score."),
    )
    bias = SystemBiasSerializer(many=True)
    bins = BinSerializer(many=True)
    slope = serializers.FloatField(allow_null=True)
    intercept = serializers.FloatField(allow_null=True)
    note = serializers.CharField(allow_blank=True)
    others = OtherJudgeSerializer(many=True)
    model = serializers.CharField(required=False)
    template = serializers.CharField(required=False)
    consistency = serializers.DictField(
        child=serializers.FloatField(), required=False, allow_null=True,
        help_text=gettext_lazy("Outputs with several answers, the mean standard deviation, the share of equal ones."),
    )  # fmt: skip
    mean_share = serializers.FloatField(
        required=False, allow_null=True, help_text=gettext_lazy("Mean probability on the scale.")
    )
    orders = serializers.DictField(
        child=serializers.IntegerField(), required=False, allow_null=True,
        help_text=gettext_lazy("Pairs asked in both orders, and how their verdicts differ."),
    )  # fmt: skip
    injections = serializers.DictField(
        required=False, allow_null=True, help_text=gettext_lazy("How texts that ask for the best rating changed it.")
    )
    controls = serializers.IntegerField(
        required=False, allow_null=True,
        help_text=gettext_lazy("Texts with control tokens of chat models, which prompts make harmless."),
    )  # fmt: skip
    looks = serializers.IntegerField(required=False, help_text=gettext_lazy("How often the test part has been shown."))


class EvaluatorReport(APIView):
    @extend_schema(operation_id="evaluator_report", parameters=_PARAMETERS, responses=EvaluatorReportSerializer)
    def get(self, request: Request, slug: str, evaluator: str) -> Response:
        """The evaluator as one more rater: alpha with and without it, alternative annotator test, confusion matrix,
        bias, calibration. For a judge on the development part of the groups."""
        return self._answer(request, slug, evaluator, is_test=False)

    @extend_schema(
        operation_id="evaluator_report_test", parameters=_PARAMETERS, request=None, responses=EvaluatorReportSerializer
    )
    def post(self, request: Request, slug: str, evaluator: str) -> Response:
        """The same on the test part of a judge. Every call is recorded; `looks` counts them."""
        return self._answer(request, slug, evaluator, is_test=True)

    def _answer(self, request: Request, slug: str, evaluator: str, *, is_test: bool) -> Response:
        project = get_project(user=request.user, slug=slug, need="read")
        _score_set, report = make_report(
            project=project, user=request.user, evaluator=evaluator, given=request.query_params, is_test=is_test
        )
        return Response(report)
