"""Addresses of the pages."""

from django.urls import path

from .views import candidates, corpora

app_name = "retrieval"
P = "projects/<slug:slug>/corpora/"
urlpatterns = [
    path(P, corpora.corpus_list, name="corpus-list"),
    path(P + "new/", corpora.corpus_new, name="corpus-new"),
    path(P + "<slug:name>/", corpora.corpus_show, name="corpus"),
    path(P + "<slug:name>/add/", corpora.corpus_add, name="corpus-add"),
    path(P + "<slug:name>/index/", corpora.corpus_index, name="corpus-index"),
    path(P + "<slug:name>/delete/", corpora.corpus_delete, name="corpus-delete"),
    path("my/writing/<slug:public>/candidates/", candidates.candidates, name="candidates"),
]
