"""The catalogue entry of the comparative evaluator with profiles and options. No torch here."""

from __future__ import annotations

from scoring.ml import option_checks
from scoring.ml.catalogue import PAPER, RECOMMENDED, Entry
from scoring.ml.options import SCORING, choice, flag, integer, number
from scoring.ml.training.options import FINETUNING, INPUTS, RATINGS

_SOURCE = ("auto", "yes", "no")

TRAINING = (
    *FINETUNING,
    INPUTS,
    choice(
        "form",
        ("own", "shared"),
        "Input of a pair: own puts the context before each text; shared reads a common context once, which leaves more"
        " room for the texts.",
        default="shared",
    ),
    choice(
        "strong",
        _SOURCE,
        "Learn that texts written by people are better than generated ones; auto if both are available, yes requires "
        "them.",
        default="auto",
    ),
    choice(
        "weak",
        _SOURCE,
        "Learn that later checkpoints are better than earlier ones; auto if outputs have steps, yes requires them.",
        default="auto",
    ),
    choice(
        "human",
        _SOURCE,
        "Learn from human ratings and comparisons, after everything else; auto if there are any, yes requires them.",
        default="auto",
    ),
    RATINGS,
    choice(
        "rating_pairs",
        ("context", "rater", "both", "all"),
        "Rated texts to pair: of the same context; by the same rater; both; or all pairs, as in the paper.",
        default="both",
    ),
    number(
        "tau",
        None,
        "Ratings that differ by at most this are a tie; none is 0 for integer ratings by one person, and an eighth of "
        "the scale for means over several raters and for fractional ratings.",
        minimum=0,
    ),
    integer("human_pairs", 20000, "Largest number of pairs from ratings, drawn by seed.", minimum=1),
    integer("human_epochs", 2, "Passes over human verdicts after the other pairs.", minimum=1),
    number(
        "human_learning_rate",
        1e-5,
        "Step size for human verdicts after the other pairs; without other pairs, epochs and learning_rate apply.",
        minimum=0,
        maximum=1,
    ),
    integer(
        "pairs_per_epoch",
        None,
        "Strong and weak pairs drawn for one epoch; none is four for each text, at most 20,000.",
        minimum=1,
    ),
    number(
        "same_context",
        0.8,
        "Share of drawn pairs whose texts answer the same context.",
        minimum=0,
        maximum=1,
        advanced=True,
    ),
    number("margin", 0.1, "Smallest distance of two checkpoints as a share of training.", minimum=0, maximum=1),
    flag("curriculum", True, "Begin with distant checkpoints and reduce the distance to the margin.", advanced=True),
    number(
        "smoothing",
        0.1,
        "Label smoothing of weak pairs; at 1 nothing would be left to learn.",
        minimum=0,
        advanced=True,
        check=option_checks.below_one,
    ),
    flag("tie", True, "Whether it may call two texts indistinguishable."),
    flag(
        "calibrate",
        True,
        "Fit probabilities and the share of ties to human verdicts on held-out groups, a tenth of the data if no "
        "held-out part is given; without human verdicts or tie it has no effect.",
    ),
    flag(
        "comparison",
        True,
        "Compare two texts. Without it each text is classified alone as human or machine-written: the adversarial "
        "evaluator, as a baseline.",
        advanced=True,
    ),
    flag("pretrained", True, "Start from the encoder's weights, not from random ones.", advanced=True),
    choice(
        "pooling",
        ("cls", "mean", "sides"),
        "How a pair becomes one vector: the first token's, the mean of all tokens, or the mean of each text's "
        "tokens with their distance and product.",
        advanced=True,
    ),
    integer(
        "words",
        None,
        "Truncate longer texts at the sentence end nearest to this number of words; none truncates only at the "
        "encoder's maximum length.",
        minimum=1,
        advanced=True,
    ),
    integer("references", 50, "Machine-written texts stored as common references for single texts.", minimum=1),
    integer(
        "restarts",
        0,
        "Largest number of restarts with other random numbers, if after one epoch the held-out accuracy is within two "
        "points of always giving the same verdict; only with stages=together.",
        minimum=0,
        advanced=True,
    ),
)

APPLYING = (
    *SCORING,
    choice(
        "by",
        ("references", "skill", "others"),
        "Score of a single text: its verdicts against common machine-written references; its skill rating among all "
        "texts given; or 1 plus its wins over four others of the same context, as people scored in the paper.",
    ),
    choice(
        "points",
        ("sum", "share"),
        "3 for a won, 1 for a tied comparison: as their sum (0 to 150), or as the share of the most (0 to 1).",
    ),
    integer("n_references", None, "Use only this number of references; none is all.", minimum=1),
    flag(
        "symmetric",
        None,
        "Read every pair in both directions and average; none is the profile's default (recommended yes, paper no).",
        advanced=True,
    ),
    choice(
        "outcome",
        ("verdict", "expected"),
        "Outcome of a comparison: verdict, the most likely of better, tie and worse; or expected, the expectation: "
        "p(better) + p(tie) / 2 of a game, 3 p(better) + p(tie) points. None is the default of the training's profile "
        "(recommended expected, paper verdict); evaluators of earlier versions count verdicts.",
        default=None,
    ),
    choice(
        "tie_rule",
        ("half", "paper"),
        "Value of a draw in skill ratings: half a win, or the paper's tenth of a win or loss; none is the profile's. "
        "Only with outcome=verdict, because expected outcomes have no draws.",
        advanced=True,
        default=None,
    ),
    integer("plays", None, "Games of a skill rating of texts; none is 50 for each text.", minimum=1),
    integer("seed", 13, "Draws the games of skill ratings, and the four others.", minimum=0),
)

ENTRIES = (
    Entry(
        name="comparative",
        kind="trained",
        summary="Which of two texts is better, or neither: learned from human and machine texts, from earlier and "
        "later checkpoints, and from human verdicts.",
        scale=(0.0, 150.0),
        needs=("encoder",),
        options=APPLYING,
        profiles=(RECOMMENDED, PAPER),
        citation="Zhou and Xu (2020), Learning to Compare for Better Training and Evaluation of Open Domain Natural "
        "Language Generation Models, AAAI 2020.",
        papers=("zhou-xu-2020-learning",),
        implementation="scoring.ml.evaluators.comparative.evaluator:Comparative",
        cross_fitted="scoring.ml.evaluators.comparative.folds:CrossFittedComparative",
        train_options=TRAINING,
        train_needs=("outputs",),
        aspect="one",
        compares=True,
        revision=2,
        profile_defaults={
            PAPER: {
                "stages": "together",
                "form": "own",
                "rating_pairs": "all",
                "max_length": 512,
                "words": 250,
                "restarts": 2,
                "calibrate": False,
            },
            RECOMMENDED: {"stages": "head", "features": "separate", "learning_rate": 5e-5, "pooling": "sides"},
        },
    ),
)
