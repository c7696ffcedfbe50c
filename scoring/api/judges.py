"""The report of an evaluator as one more rater, for programs. Judges are runs: `POST projects/{slug}/runs/` with the
kind `judge`, and `judge-check` for the dry check."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evalapp.accounts.selectors import get_project

from ..selectors.chosen_sets import get_set
from ..selectors.judge_report import Part, choose_report, count_looks, find_report
from ..services.judges import record_look

_PARAMETERS = [
    OpenApiParameter("set", str, description="A score set of the evaluator; the newest by default."),
    OpenApiParameter("aspect", str, description="The rated aspect; that of the scores, or the first, by default."),
    OpenApiParameter("epsilon", str, description="The price of a person in the alternative annotator test, 0.1."),
]


class EvaluatorReport(APIView):
    @extend_schema(operation_id="evaluator_report", parameters=_PARAMETERS, responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, slug: str, evaluator: str) -> Response:
        """The evaluator as one more rater: alpha with and without it, alternative annotator test, confusion matrix,
        bias, calibration. For a judge on the development part of the groups."""
        return self._answer(request, slug, evaluator, is_test=False)

    @extend_schema(
        operation_id="evaluator_report_test", parameters=_PARAMETERS, request=None, responses=OpenApiTypes.OBJECT
    )
    def post(self, request: Request, slug: str, evaluator: str) -> Response:
        """The same on the test part of a judge. Every call is recorded; `looks` counts them."""
        return self._answer(request, slug, evaluator, is_test=True)

    def _answer(self, request: Request, slug: str, evaluator: str, *, is_test: bool) -> Response:
        project = get_project(user=request.user, slug=slug, need="read")
        given = request.query_params
        score_set = get_set(project, evaluator, given.get("set", ""))
        row = score_set.evaluator
        part: Part = "all"
        if row.is_judge:
            part = "test" if is_test else "development"
            if is_test:
                record_look(evaluator=row, user=request.user)
        query = choose_report(project, score_set, given.get("aspect", ""), part, given.get("epsilon", ""))
        looks = {"looks": count_looks(row)} if row.is_judge else {}
        return Response({**find_report(project, query), **looks})
