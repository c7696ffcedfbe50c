"""Addresses under /api/v1/."""

from django.urls import path

from . import candidates, corpora

P = "projects/<slug:slug>/"
urlpatterns = [
    path(P + "corpora/", corpora.CorpusList.as_view(), name="api-corpora"),
    path(P + "corpora/<slug:name>/", corpora.CorpusShow.as_view(), name="api-corpus"),
    path(P + "corpora/<slug:name>/parts/", corpora.PartList.as_view(), name="api-corpus-parts"),
    path(P + "candidates/", candidates.CandidateList.as_view(), name="api-candidates"),
]
