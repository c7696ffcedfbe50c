"""The kinds of background job of this room."""

from evalapp.common.jobs import Job, register

register(
    Job(
        "score",
        "cpu",
        "scoring.pipelines.score:run",
        "Apply an evaluator to the outputs of a project.",
        request="scoring.services.scores:start_scoring",
        params="scoring.services.scores:ScoringOptions",
        give_up="scoring.services.scores:give_up_scores",
        label="Scores of an evaluator",
        gone="scoring.selectors.run_results:scores_gone",
    )
)
register(
    Job(
        "combine",
        "cpu",
        "scoring.pipelines.combine:run",
        "Combine several evaluators into one.",
        request="scoring.services.combining:start_combination",
        params="scoring.services.combining:CombineWishes",
        label="Combined evaluator",
        gone="scoring.selectors.run_results:scores_gone",
    )
)
register(
    Job(
        "train",
        "gpu",
        "scoring.pipelines.train:run",
        "Train an evaluator on the data of a project.",
        request="scoring.services.training:start_training",
        params="scoring.services.training:TrainingOptions",
        fragment="scoring:training-curve",
        give_up="scoring.services.artefacts:give_up_evaluator",
        label="Training",
        gone="scoring.selectors.run_results:evaluator_gone",
    )
)
register(
    Job(
        "plan",
        "cpu",
        "scoring.pipelines.train:check",
        "Check before a training: counts, steps, time, or what is missing.",
        request="scoring.services.training:start_check",
        params="scoring.services.training:TrainingOptions",
        label="Check before a training",
    )
)
register(
    Job(
        "annotate",
        "gpu",
        "scoring.pipelines.annotate:run",
        "Choose references by an evaluator into a new reference set.",
        request="scoring.services.annotating:start_annotation",
        params="scoring.services.annotating:AnnotateWishes",
        label="References chosen by an evaluator",
        gone="scoring.selectors.run_results:references_gone",
    )
)
register(
    Job(
        "annotate-preview",
        "gpu",
        "scoring.pipelines.annotate:preview",
        "Try an annotation on five items.",
        request="scoring.services.annotating:start_preview",
        params="scoring.services.annotating:AnnotateWishes",
        label="Preview of references",
    )
)
register(
    Job(
        "reliability",
        "gpu",
        "scoring.pipelines.reliability_curves:run",
        "Compute how reliable sets of references are, by their size and by how they were chosen.",
        request="scoring.services.reliability_curves:start_curves",
        params="scoring.services.reliability_curves:CurveWishes",
        label="Reliability of references",
    )
)
register(
    Job(
        "robustness",
        "gpu",
        "scoring.pipelines.robustness:run",
        "Score the kinds of texts that people wrote under constraints with one evaluator.",
        request="scoring.services.robustness:start_robustness",
        params="scoring.services.robustness:RobustnessWishes",
        label="Robustness",
    )
)
register(
    Job(
        "selection",
        "gpu",
        "scoring.pipelines.selecting:run",
        "Let evaluators choose among checkpoints and variants, and ask what people think of the picks.",
        request="scoring.services.selecting:start_selection",
        params="scoring.services.selecting:SelectionWishes",
        label="Choices of checkpoints",
    )
)
register(
    Job(
        "games",
        "gpu",
        "scoring.pipelines.games:run",
        "Rank systems by games from the verdicts of an evaluator that compares texts.",
        request="scoring.services.games:start_games",
        params="scoring.services.games:GamesWishes",
        label="Games between systems",
        gone="scoring.selectors.run_results:evaluator_gone",
    )
)
register(
    Job(
        "artefact",
        "gpu",
        "scoring.pipelines.artefacts:run",
        "Check an uploaded evaluator and store it.",
        give_up="scoring.services.artefacts:give_up_evaluator",
        label="Uploaded evaluator",
        gone="scoring.selectors.run_results:evaluator_gone",
        spent="scoring.services.artefacts:is_spent",
    )
)
register(
    Job(
        "rank",
        "cpu",
        "scoring.pipelines.rank:run",
        "Compute a leaderboard that is too large for a page.",
        label="Leaderboard",
    )
)
