"""The kinds of background job of this room."""

from evalapp.common.jobs import Job, register

register(
    Job(
        "score",
        "cpu",
        "scoring.pipelines.score:run",
        "Apply an evaluator to the outputs of a project.",
        request="scoring.services.scores:request_score",
    )
)
register(Job("rank", "cpu", "scoring.pipelines.rank:run", "Compute a leaderboard that is too large for a page."))
