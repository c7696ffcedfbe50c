"""Candidates in the API: pairs of a corpus that are similar to a context, or that contain words."""

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation.allocation.texts import UNSTORABLE, is_storable
from annotation.models import Item
from evalapp.accounts.selectors import get_project
from evalapp.common.errors import BadInput, NotThere

from ..selectors.corpora import find_corpus
from ..services.candidates import MOST, find_candidates, search_corpus

BY = ("context", "words")


class SourceSerializer(serializers.Serializer):
    corpus = serializers.CharField()
    row = serializers.IntegerField(help_text="Its position in the corpus without duplicates.")
    licence = serializers.CharField()
    origin = serializers.CharField()


class CandidateSerializer(serializers.Serializer):
    text = serializers.CharField(help_text="The response of the pair.")
    query = serializers.CharField()
    jaccard = serializers.FloatField()
    source = SourceSerializer()


class CandidatesSerializer(serializers.Serializer):
    """`note` explains in one line why there are none, for example because the index is being built."""

    results = CandidateSerializer(many=True)
    note = serializers.CharField()


def _whole(request: Request, name: str, default: int | None, most: int) -> int | None:
    value = request.query_params.get(name, "")
    if not value:
        return default
    if not value.isdecimal() or not 1 <= int(value) <= most:
        text = _("%(name)s must be a whole number from 1 to %(most)d.") % {"name": name, "most": most}
        raise BadInput.for_field(name, text)
    return int(value)


class CandidateList(APIView):
    pagination_class = None

    @extend_schema(
        operation_id="candidates_list",
        parameters=[
            OpenApiParameter("corpus", str, required=True, description="Name of the corpus."),
            OpenApiParameter("q", str, description="A context, or words; can be left out with item."),
            OpenApiParameter("by", str, enum=BY, default="context", description="The meaning of q: a context that is "
                             "compared with each query, or words that the pair must contain."),
            OpenApiParameter("item", str, description="The id of an item: search with its context, without texts "
                             "that equal its outputs."),
            OpenApiParameter("turns", int, description="With item: the number of last turns; default: all."),
            OpenApiParameter("k", int, default=20, description=f"The number of different responses, at most {MOST}."),
        ],
        responses=CandidatesSerializer,
    )  # fmt: skip
    def get(self, request: Request, slug: str) -> Response:
        """The best pairs of a corpus, different responses only; exact Jaccard similarity, ties by row."""
        project = get_project(user=request.user, slug=slug, need="read")
        given = request.query_params
        if not is_storable(dict(given)):
            raise BadInput(UNSTORABLE)
        by = given.get("by", "context")
        if by not in BY:
            raise BadInput.for_field("by", _("by must be one of: %(choices)s.") % {"choices": ", ".join(BY)})
        k = _whole(request, "k", 20, MOST) or 20
        if "corpus" not in given:
            raise BadInput.for_field("corpus", _("The corpus is missing."))
        corpus = find_corpus(project, given["corpus"]).name
        q = given.get("q", "")
        words = q if by == "words" and q.strip() else None
        if "item" in given:
            item = Item.objects.filter(project=project, key=given["item"]).first()
            if item is None:
                raise NotThere(_("This project has no item “%(item)s”.") % {"item": given["item"]})
            turns = _whole(request, "turns", None, 1000)
            candidates = find_candidates(project=project, corpus=corpus, item=item, k=k, turns=turns, text=words)
        elif not q.strip():
            raise BadInput.for_field("q", _("Give a search text (q) or an item."))
        else:
            candidates = search_corpus(project=project, corpus=corpus, words=words, context=q, k=k)
        return Response(CandidatesSerializer({"results": candidates.rows, "note": candidates.note}).data)
