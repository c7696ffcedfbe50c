"""The kinds of background job of this app."""

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
        label="Index of a corpus",
    )
)
