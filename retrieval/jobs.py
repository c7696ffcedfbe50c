"""The kinds of background job of this app."""

from django.utils.translation import gettext_lazy as _

from evalapp.common.jobs import Job, register

register(
    Job(
        "index",
        "cpu",
        "retrieval.pipelines.index:run",
        "Store what was added to a corpus and build its index.",
        request="retrieval.services.corpora:request_index",
        params="retrieval.services.corpora:IndexOptions",
        give_up="retrieval.services.corpora:give_up_index",
        label=_("Index of a corpus"),
    )
)
