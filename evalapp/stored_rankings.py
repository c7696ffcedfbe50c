"""Templates of the English notes and sentences of rankings and leaderboards (`evalapp.stored_texts`)."""

from evalapp.translation import gettext_noop as _

RANKING = (
    _("Whether the first side is favoured cannot be determined: %(why)s."),
    _("Whether the longer text is favoured cannot be determined: %(why)s."),
    _("The first side won all of %(n)s decided comparisons."),
    _("The first side won none of %(n)s decided comparisons."),
    _("The longer text won all of %(n)s decided comparisons."),
    _("The longer text won none of %(n)s decided comparisons."),
    _("Between equal systems the first side wins %(n)s %% of the decided comparisons."),
    _("Between equal systems the longer text wins %(n)s %% of the decided comparisons."),
    _("Between equal systems the first side wins %(n)s %% of the decided comparisons (%(l)s to %(h)s; p %(p)s)."),
    _("Between equal systems the longer text wins %(n)s %% of the decided comparisons (%(l)s to %(h)s; p %(p)s)."),
    _("all texts compared are equally long"),
    _("no comparison was decided"),
    _("no comparison between rated systems"),
    _("the texts of the systems that can be rated are equally long"),
    _("no decided comparison"),
    _("all texts of the systems that can be rated are equally long"),
    _("the fit does not converge: no finite estimates"),
    _("ties and decided verdicts fit perfectly: no finite estimates"),
    _("verdicts follow the side or the lengths without exception: no finite estimates"),
    _("only the prior puts their values on one scale"),
    _("all verdicts are ties"),
    _("the effects cannot be separated from the systems: pairs were always shown the same way"),
    _("no judgement between two systems"),
    _("no judgement of this system"),
    _(
        "Glicko-2’s deviation says how far a rating may still move with the next games, not how many judgements there "
        "are: it does not shrink with more comparisons, so these rank sets are wide. Nor does it grow with few "
        "comparisons: two systems differ in rank only where a Bradley-Terry fit with Firth’s penalty also finds a "
        "significant difference. Choose Bradley-Terry or Davidson for rank sets that depend on the number of "
        "judgements."
    ),
    _(
        "the comparisons fall into %(n)s parts that were never compared with each other, so only %(part)s is ranked: "
        "%(first)s. Not ranked: %(others)s"
    ),
    _(
        "the comparisons fall into %(n)s parts that were never compared with each other, so only %(part)s is ranked: "
        "%(first)s. Not ranked: %(others)s; figures are over the %(k)s with a value."
    ),
    _("the largest part"),
    _("one part (among equally large parts the one with most judgements, else the first)"),
    _(
        "only %(n)s of %(m)s systems both won and lost against each other, directly or by way of others; the rest won "
        "or lost every link to them, so they have a rank, but no finite rating"
    ),
    _("never compared with the systems that are ranked, directly or through others"),
    _("no two systems were compared with a verdict that ranks them, so none is ranked"),
    _("No number of changed judgements can be given: %(why)s."),
    _("%(first)s and %(second)s are equal."),
    _("Changing 1 judgement of %(m)s (%(s)s %%) swaps %(first)s and %(second)s (%(way)s)."),
    _("Changing %(n)s judgements of %(m)s (%(s)s %%) swaps %(first)s and %(second)s (%(way)s)."),
    _("no fewer can"),
    _("found by refitting"),
    _("fewer than %(n)s cannot"),
    _("the first would stay ahead whatever its judgements were"),
    _("fewer than two systems are rated"),
    _("the evaluator has no value for this system"),
    _("the metric has no value for this system"),
    _("Ranks 1 and 2 differ (p %(p)s)."),
    _("Ranks 1 and 2 are equal so far; no number of comparisons can be foreseen that separates them."),
    _("More than a million more comparisons would be needed to separate ranks 1 and 2."),
    _("About 1 more comparison would separate ranks 1 and 2 (%(way)s)."),
    _("About %(n)s more comparisons would separate ranks 1 and 2 (%(way)s)."),
    _("if all are between these two"),
    _("spread as so far"),
    _("about %(n)s spread over all pairs as so far"),
    _("never compared"),
    _("it won %(n)s of its own comparisons"),
    _("won or lost every link to each other system, so it has no finite rating"),
    _("won every comparison, so its rating has no upper end"),
    _("lost every comparison, so its rating has no lower end"),
    _("won every link to the systems that have a rating, so its own has no upper end"),
    _("lost every link to the systems that have a rating, so its own has no lower end"),
    _("no chain of wins or losses joins it with the systems that have a rating"),
)
BOARDS = (
    _("There are no judgements of %(aspect)s here."),
    _(
        "Verdicts are oriented by system name before nominal agreement is computed: “a” is the system whose name comes "
        "first, on either side."
    ),
    _("z-scores of two raters are hardly ever equal"),
    _("There are no judgements yet."),
    _("Calibration needs ratings; for comparisons, use a model with side and rater as covariates."),
    _("Calibration needs at least two systems and two raters."),
    _("%(aspect)s: %(note)s"),
    _("No aspect has ratings."),
    _("not scored for this aspect"),
    _("1 judgement repeats an earlier one by the same person and is not counted."),
    _("%(n)s judgements repeat earlier ones by the same person and are not counted."),
    _("1 rating of an output that was chosen by its expected error is not counted."),
    _("%(n)s ratings of outputs that were chosen by their expected error are not counted."),
    _("There are fewer than two evaluators to compare."),
    _(
        "Compared on the %(n)s of %(m)s rated outputs that all evaluators have scored, so that every row has the same "
        "human scores. Missing scores: %(names)s."
    ),
    _("With %(n)s systems, rankings at the system level are not meaningful: see the intervals."),
    _(
        "Intervals from %(n)s groups of items are slightly too narrow: their coverage in simulations is .91 to .94 for "
        "30 groups and .92 to .95 for %(m)s, instead of .95."
    ),
    _(
        "Intervals from %(n)s groups of items are slightly too narrow: their coverage in simulations is .91 to .94 for "
        "30 groups and .92 to .95 for %(m)s, instead of .95; fewer groups were not simulated."
    ),
    _("Every rated output is in the training data of an evaluator in this table, so none is left to compare on."),
    _("Every rated dialogue is in the training data of an evaluator in this table, so none is left to compare on."),
    _("Every comparison is in the training data of an evaluator in this table, so none is left to compare on."),
    _("In training data, of %(n)s rated outputs: %(names)s."),
    _("In training data, of %(n)s compared outputs: %(names)s."),
    _("In training data, of %(n)s groups of items: %(names)s."),
    _(
        "Choose other evaluators (Evaluators above the table, meta --evaluators), train with folds, delete evaluators, "
        "or have more outputs judged."
    ),
    _("no output can be compared"),
    _("No output of these systems has ratings of this aspect."),
    _("Intervals of Kendall’s coefficient are conservative: their coverage in simulations is .97 to .99."),
    _("it has no scores"),
    _("No output belongs to a rated dialogue: give the items of its turns the id of the dialogue as `group`."),
    _("%(names)s has one value for all outputs of a system, also those not compared here."),
    _("%(names)s have one value for all outputs of a system, also those not compared here."),
    _("No matching scores: %(names)s."),
    _("the evaluator's own value of each system is held fixed in the interval"),
    _("its value uses all outputs of each system, also those not compared here"),
    _("the mean of its scores: its own value of each system includes outputs in its training data"),
    _("figures are over the %(n)s with a value."),
    _("No output of these systems has been compared with a reference (Turing M1) for %(aspect)s."),
    _("No output of these systems has been compared with another for %(aspect)s."),
    _("No output has been compared with a reference (Turing M1) for %(aspect)s."),
    _("No output has been compared with another for %(aspect)s."),
    _("not defined for rankings from comparisons"),
    _("there is no test for %(coefficient)s; see the intervals"),
    _(
        "Since version 0.2.0, scores of whole systems are exchanged at this level; before, groups of items were "
        "exchanged, which had too many false positives"
    ),
    _("Williams’ test is for Pearson over all outputs together; choose the permutation test"),
    _("pairs with calibrated ties belong to the level of outputs"),
    _("no test was requested"),
    _("there are fewer than two evaluators to compare"),
    _("nothing was rated"),
    _("a ceiling is defined only for correlation coefficients"),
    _("no output has both scores"),
    _("one of both coefficients is undefined"),
    _("%(name)s has no scores on these pairs"),
    _("No pair has a most frequent verdict."),
    _("All pairs are tied, so there is no order to predict."),
    _("not scored with this set"),
    _("Fewer than two reference sets have scores. Score with another set to compare them."),
    _("No evaluator has scores with at least two selected sets. Apply the same evaluator with each set."),
    _("no output of this subset has both scores"),
    _("nothing can be compared"),
    _("All items belong to the same subset."),
    _("%(name)s saves about %(n)s%% of the judgements: intervals are as narrow as with %(m)s times as many."),
    _("No scored output has been compared with another for %(aspect)s."),
    _("Too few judgements to tell what %(name)s saves."),
    _("%(name)s does not help here: everything scored was judged. The intervals are about those of judgements only."),
    _(
        "%(name)s does not help here: its scores say little about judgements within systems. The intervals are about "
        "those of judgements only."
    ),
    _("%(n)s outputs were chosen by their expected error and are weighted by 1 / chance, in both columns."),
    _("%(n)s comparisons of outputs without a score are not counted."),
    _("%(n)s judged outputs have no score and are not counted."),
    _("The judged outputs count as a random sample of the scored ones: people must not have chosen them by quality."),
    _("A chosen sample has estimates for items like these only."),
    _("%(n)s verdicts on texts for %(m)s items, each pair of texts compared once."),
    _("The outcome of a game is its expectation: the probability of a win plus half that of a tie."),
    _("%(n)s%% of the verdicts reverse when the two texts are swapped."),
    _("In %(n)s pairs a text was too long for the evaluator and was truncated."),
    _("Ratings converged in %(n)s%% of %(m)s simulations, after %(k)s games on average."),
    _("The others stopped at the maximum number of games."),
    _("%(n)s verdicts are on items in its training data, where it may know the systems."),
    _("Lower is better for this evaluator: its values are negated."),
    _("METEOR (2005) is below 1 for identical texts: with n words its maximum is 1 − gamma / n^beta."),
    _("all compared texts have the same length"),
    _("no score of an output of this system"),
    _("No output of these systems has been judged for this aspect."),
    _("one value for the whole system, without an interval"),
    _("one value for the whole system, made elsewhere, without an interval"),
    _("one value for all outputs of the system; no interval, as it is not computed from sums over texts"),
    _("it could not be computed because of an internal error, which is in the server's log"),
)
LETTERS = (
    _(
        "Evaluators that share a letter are not significantly different (%(test)s, %(n)s draws; two-sided p ≤ %(p)s "
        "after Holm’s correction for all pairs, over %(m)s outputs scored by all)."
    ),
    _(
        "Evaluators that share a letter are not significantly different (%(test)s; two-sided p ≤ %(p)s "
        "after Holm’s correction for all pairs, over %(m)s outputs scored by all)."
    ),
    _("The test is %(test)s, %(n)s draws, over %(m)s outputs scored by all."),
    _(
        "Evaluators that share a letter are not significantly different (%(test)s, %(n)s draws; two-sided p ≤ %(p)s "
        "after Holm’s correction for all pairs, over %(m)s systems scored by all)."
    ),
    _(
        "Evaluators that share a letter are not significantly different (%(test)s; two-sided p ≤ %(p)s "
        "after Holm’s correction for all pairs, over %(m)s systems scored by all)."
    ),
    _("The test is %(test)s, %(n)s draws, over %(m)s systems scored by all."),
    _(
        "Evaluators that share a letter are not significantly different (%(test)s, %(n)s draws; two-sided p ≤ %(p)s "
        "after Holm’s correction for all pairs, over %(m)s decided pairs scored by all)."
    ),
    _(
        "Evaluators that share a letter are not significantly different (%(test)s; two-sided p ≤ %(p)s "
        "after Holm’s correction for all pairs, over %(m)s decided pairs scored by all)."
    ),
    _("The test is %(test)s, %(n)s draws, over %(m)s decided pairs scored by all."),
    _(
        "Evaluators that share a letter are not significantly different (%(test)s, %(n)s draws; two-sided p ≤ %(p)s "
        "after Holm’s correction for all pairs, over %(m)s dialogues scored by all)."
    ),
    _(
        "Evaluators that share a letter are not significantly different (%(test)s; two-sided p ≤ %(p)s "
        "after Holm’s correction for all pairs, over %(m)s dialogues scored by all)."
    ),
    _("The test is %(test)s, %(n)s draws, over %(m)s dialogues scored by all."),
    _("The test: %(test)s."),
    _("PERM-SYSTEMS: exchanges of whole systems"),
    _("PERM-INPUTS: exchanges of groups of items"),
    _("exchanges of groups of items, called PERM-BOTH in version 0.1.0"),
    _("paired bootstrap"),
    _("Williams’ test"),
    _("No letters."),
    _("No letters: %(why)s."),
    _("At this level that test has too many false positives; later versions exchange whole systems."),
    _("It generalises to %(what)s."),
    _(
        "It assumes independent outputs; with several outputs per item its p may be too small, so prefer the "
        "permutation test."
    ),
    _("Each coefficient uses all outputs that its evaluator has scored."),
    _("The smallest p of this test is %(p)s before the correction."),
)
SENTENCES = (*RANKING, *BOARDS, *LETTERS)
