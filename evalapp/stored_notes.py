"""Templates of the English notes and sentences of statistics and leaderboards (`evalapp.stored_texts`)."""

from evalapp.translation import gettext_noop as _

#: What is counted in notes.
COUNTED = (
    _("%(n)s clusters"),
    _("%(n)s groups"),
    _("%(n)s groups of items"),
    _("%(n)s independent units"),
    _("%(n)s items"),
    _("%(n)s judgements"),
    _("%(n)s outputs"),
    _("%(n)s pairs of outputs"),
    _("%(n)s raters"),
    _("%(n)s systems"),
    _("%(n)s units"),
    _("%(few)s and %(less)s"),
)
INTERVALS = (
    _("no interval"),
    _("no interval: %(few)s only, at least %(n)s are needed"),
    _("not tested: %(few)s only, at least %(n)s are needed"),
    _("not tested: %(few)s only, a bootstrap needs at least %(n)s"),
    _("the interval rests on %(few)s only"),
    _("no interval: all parts of the data give the same value, so they say nothing of its uncertainty"),
    _("all came out the same: exact interval (Clopper-Pearson)"),
    _("the value lies outside the interval of its resamples: do not rely on either end"),
    _("no interval: only %(n)s%% of the resamples give a defined value"),
    _("no interval: only %(n)s%% of the resamples give finite ratings"),
    _("no interval: the values are too large to compute with"),
    _("no interval: the order is the same for all systems, so leaving one out changes nothing"),
    _("no interval: without one of the systems the value is undefined"),
    _("no interval: the resamples lie on one side of the value"),
    _("no interval: no comparison is tied"),
    _("no interval: no variance"),
    _("no interval: one output"),
    _("no interval: the ceiling may be 0"),
    _("no interval: that of the ceiling is too wide"),
    _("no interval: without some units it is undefined"),
    _("no interval: the estimate is on the boundary of the possible range"),
    _("no interval: all pairs of systems are alike, so that no resample differs"),
    _("no interval: %(n)s independent units are too few for %(m)s systems"),
)
AGREEMENT = (
    _("unweighted"),
    _("quadratic weights"),
    _("1 pair of raters with %(n)s or more units in common"),
    _("mean of %(n)s pairs of raters with %(m)s or more units in common"),
    _("every pair of raters gave one value only"),
    _("no two raters share enough units"),
    _("units have unequally many ratings: the mean over units, each counted once"),
    _("%(n)s of %(m)s units have one rating and say nothing of agreement."),
    _("Units have %(n)s to %(m)s ratings."),
    _(
        "%(n)s%% of the ratings are %(value)s: kappa and alpha rest on the few others and are low even where raters "
        "agree (%(m)s%% of the pairs do)."
    ),
    _(
        "Intervals from %(n)s units are too narrow: in simulations those called 95 %% hold the truth in .73 to .91 "
        "from 10 units, in .88 to .91 from 20 and in .91 to .94 from 50."
    ),
    _(
        "Intervals from %(n)s groups of units are too narrow: in simulations those called 95 %% hold the truth in .73 "
        "to .91 from 10 units, in .88 to .91 from 20 and in .91 to .94 from 50."
    ),
    _(
        "Intervals of pairs of raters with fewer than %(n)s units in common are too narrow: in simulations those "
        "called 95 %% hold the truth in .73 to .91 from 10 units, in .88 to .91 from 20 and in .91 to .94 from 50."
    ),
    _("no unit was rated twice"),
    _("all ratings are equal"),
    _("the two have no unit in common"),
    _("the ratio scale needs values of at least 0"),
    _("fewer than three raters with shared outputs"),
    _("there are no ratings"),
    _("the ratings leave no residual: all variances are 1"),
    _("from %(n)s of %(m)s items, drawn at random"),
    _("there is one item only"),
    _("there is one rater only"),
    _("there is one system only"),
    _("there is one output only"),
    _("no systems were given"),
    _("no item has two ratings: its variance is part of the residual"),
    _("no rater gave two ratings: the variance is part of the residual"),
    _("no output was rated twice: its variance is part of the residual"),
    _("every item has one output: its variance is part of the item's"),
    _("fewer than 3 ratings"),
    _("fewer than 2 ratings"),
    _("%(n)s%% of the resamples are undefined"),
    _("one unit only: units cannot differ"),
    _(
        "negative variance component (units differ less than ratings of the same unit): below -1 or beyond the pole "
        "of the coefficient, where it says nothing; did a rater use the scale in reverse?"
    ),
    _("no exact interval: the variance between units, or the remaining variance, is 0"),
    _("no exact interval: some raters did not rate every unit"),
    _("no exact interval: its lower end is beyond the pole of the coefficient"),
    _("interval by a jackknife of %(n)s groups of units"),
    _("REML, since some raters did not rate every unit"),
    _("no rater rated two units: consistency cannot be separated from agreement"),
    _("the ratings show no variance"),
    _("fewer than %(n)s outputs have ratings and a score"),
    _("all differences or all lengths are equal"),
    _("too few outputs for an interval"),
    _("no unit has two ratings with a z-score: raters with one rating, or equal ratings only, have none"),
    _("no unit has two ratings with a rank: who rated one thing of an item ranks nothing"),
    _("1 rating has no rank: its rater rated nothing else of the item."),
    _("%(n)s ratings have no rank: their raters rated nothing else of the item."),
    _("1 rating has no z-score and is left out: its rater gave one rating, or equal ratings only."),
    _("%(n)s ratings have no z-score and are left out: their raters gave one rating, or equal ratings only."),
    _("no output was shown twice"),
    _("no output is shared with another rater"),
    _("no times are known"),
    _("no control item was judged"),
    _("the others' ratings are all equal where others rated too"),
    _("all ratings are equal where others rated too"),
    _("fewer than 3 outputs where others rated too"),
    _("the order of the judgements is not known"),
    _("fewer than 4 outputs are shared with others"),
    _("Rates %(n)s higher than others do on the same outputs (%(l)s to %(h)s, %(m)s outputs)."),
    _("Rates %(n)s lower than others do on the same outputs (%(l)s to %(h)s, %(m)s outputs)."),
    _("Gave %(v)s in %(n)s%% of %(m)s judgements; the middle rater gives one rating in %(k)s%%."),
    _("The ratings spread by %(n)s, those of all raters by %(m)s."),
    _("The ratings spread by %(n)s only, the middle rater's by %(m)s."),
    _("Takes %(n)s s a judgement, too short to read a text and answer."),
    _("Takes %(n)s s a judgement; the middle rater takes %(m)s s."),
    _("Gave the same answer to %(n)s of %(m)s outputs shown twice; all raters together do in %(k)s%%."),
    _("Failed %(n)s of %(m)s control items."),
    _("The ratings correlate %(n)s (%(l)s to %(h)s) with the mean of the others; the middle rater's correlate %(m)s."),
    _("Moved by %(n)s against the others between the first and the second half of the judgements (%(l)s to %(h)s)."),
)
CORRELATION = (
    _("%(n)s of %(m)s splits are undefined"),
    _("no rater has a defined coefficient (%(why)s)"),
    _("no item has a defined coefficient (%(why)s)"),
    _("no system has a defined coefficient (%(why)s)"),
    _("%(n)s: fewer than 3 pairs"),
    _("%(n)s: the metric is constant"),
    _("%(n)s: the human scores are constant"),
    _("cut at 1: the coefficient is larger than the ceiling, which is an estimate"),
    _("no output has two raters"),
    _("the ceiling is taken as known"),
    _("the halves of the raters do not correlate positively"),
    _("the ceiling is not positive"),
    _("fewer than 3 pairs"),
    _("fewer than 3 systems"),
    _("the metric is constant"),
    _("the human scores are constant"),
    _("%(n)s rated dialogues have no score"),
    _("%(n)s systems rank nothing, at least %(m)s are needed"),
    _("%(n)s systems rank nothing, at least %(m)s are needed for a test"),
    _("not tested: %(n)s systems rank nothing, at least %(m)s are needed"),
    _("only %(n)s outputs have both scores"),
    _("one of the two gives the same score to all"),
    _("these systems, items like these"),
    _("systems and items like these"),
    _("outputs like these, each taken as independent of the others"),
    _("there is no pair of a metric score and a human score"),
    _("%(n)s outputs without a metric score are left out"),
    _("%(n)s outputs without a metric score are counted as wrong"),
    _("no item has two outputs with both scores"),
    _("fewer than %(n)s systems have both values"),
    _("fewer than 2 systems"),
    _("%(name)s has no score"),
    _("%(name)s has no defined coefficient"),
    _("%(name)s has no verdict"),
    _("%(name)s scored %(n)s of %(m)s outputs, too few to be compared with the others"),
    _("%(name)s scored %(n)s of %(m)s outputs (%(few)s), too few to be compared with the others"),
    _("%(n)s of %(m)s pairs lack a score by at least one metric and are left out"),
    _("%(n)s of %(m)s outputs lack a score by at least one metric and are left out"),
    _("not tested: there are not two evaluators with a value to be compared"),
    _("pairs of outputs were exchanged one by one, which finds differences too easily: name clusters, such as items"),
    _("the test rests on %(few)s only, so its p may be too small"),
    _("k = %(k)s cannot reach %(a)s after Holm's adjustment for that number of pairs: k >= %(n)s"),
    _("all %(n)s exchanges of %(few)s give no p below %(p)s: compare on more %(unit)s"),
    _(
        "all %(n)s exchanges of %(few)s give no p below %(p)s, %(m)s pairs by Holm none below %(q)s: compare fewer "
        "evaluators, or more %(unit)s"
    ),
    _("groups of items"),
    _("the value of the whole: %(why)s"),
    _("too few resamples of this slice are defined"),
    _("the subsets do not differ beyond chance"),
    _("the whole correlates perfectly"),
    _("%(n)s pairs of systems share no item"),
    _("no two systems share an item"),
    _("no pair of outputs has a verdict and both scores"),
    _("people decided no pair of outputs that has both scores"),
    _("no pair was judged by two people"),
)
PLANNING = (
    _(
        "Adaptive choice needed %(n)s %% fewer judgements (%(l)s to %(h)s) than random choice to reach the error that "
        "random choice has after %(m)s (%(k)s simulated runs)."
    ),
    _("The saving of adaptive choice is undefined: %(why)s."),
    _("the error of adaptive choice never came down to that of random choice"),
    _(
        "%(n)s items with %(m)s ratings per output (%(k)s judgements) detect a difference of %(d)s with power %(p)s; "
        "the smallest difference they detect with power %(t)s is %(s)s."
    ),
    _(
        "%(n)s items with %(m)s ratings per output (%(k)s judgements) detect a difference of %(d)s with power %(p)s, "
        "%(q)s in simulation; the smallest difference they detect with power %(t)s is %(s)s."
    ),
    _(
        "%(n)s items with 1 rating per output (%(k)s judgements) detect a difference of %(d)s with power %(p)s; the "
        "smallest difference they detect with power %(t)s is %(s)s."
    ),
    _(
        "%(n)s items with 1 rating per output (%(k)s judgements) detect a difference of %(d)s with power %(p)s, "
        "%(q)s in simulation; the smallest difference they detect with power %(t)s is %(s)s."
    ),
    _(
        "Doubling the judgements gives power %(p)s with more items (%(n)s) and %(q)s with more ratings per output "
        "(%(m)s): add items."
    ),
    _(
        "Doubling the judgements gives power %(p)s with more items (%(n)s) and %(q)s with more ratings per output "
        "(%(m)s): the two are equivalent."
    ),
    _(
        "With any number of raters, %(n)s items reach at most power %(p)s, because outputs of a system differ by "
        "%(s)s (standard deviation): more items are needed."
    ),
    _("No design with up to a million items reaches power %(p)s."),
    _("Power %(p)s is cheapest with %(n)s items with 1 rating per output (%(k)s judgements) for two systems."),
    _("Power %(p)s is cheapest with %(n)s items with %(m)s ratings per output (%(k)s judgements) for two systems."),
    _(
        "Power %(p)s is cheapest with %(n)s items with 1 rating per output (%(k)s judgements), counting an item as "
        "%(c)s judgements, for two systems."
    ),
    _(
        "Power %(p)s is cheapest with %(n)s items with %(m)s ratings per output (%(k)s judgements), counting an item "
        "as %(c)s judgements, for two systems."
    ),
    _("The mean of 1 rating per output has reliability %(r)s."),
    _("The mean of %(n)s ratings per output has reliability %(r)s."),
    _(
        "The mean of 1 rating per output has reliability %(r)s; segment-level correlations of evaluators need about "
        ".8, which takes %(m)s ratings per output."
    ),
    _(
        "The mean of %(n)s ratings per output has reliability %(r)s; segment-level correlations of evaluators need "
        "about .8, which takes %(m)s ratings per output."
    ),
    _("The pilot had one system or one rating per output, so the item variance replaces the output variance."),
    _("no simulations were asked for"),
    _(
        "The systems fall into %(n)s parts that were never compared with each other, so only %(part)s is ranked: "
        "%(first)s. Not ranked: %(others)s."
    ),
    _("The mean rating changed by %(n)s from the first to the second half of the judgements."),
    _("The share for the first side changed by %(n)s from the first to the second half of the judgements."),
    _("Median time fell from %(n)s s to %(m)s s: annotators hurry or have become faster."),
    _("fewer than %(n)s judgements"),
    _("Advice on stopping appears after %(n)s judgements."),
    _("Advice on stopping needs judgements of %(n)s items; %(m)s have been judged."),
    _("A ranking needs at least two systems with judgements."),
    _("All %(n)s systems differ significantly at 99 %%; the campaign could stop."),
    _("%(n)s judgements would be saved."),
    _("Rank 1 (%(name)s) is settled at 99 %%; ranks below are not."),
    _("Ranks 1 and 2 (%(first)s, %(second)s) do not differ significantly yet."),
    _("Chose the first side in %(n)s%% of %(m)s decided comparisons."),
    _("Chose the second side in %(n)s%% of %(m)s decided comparisons."),
    _("No two systems were compared with a verdict that ranks them, so none is ranked."),
)
NOTES = (*COUNTED, *INTERVALS, *AGREEMENT, *CORRELATION, *PLANNING)
