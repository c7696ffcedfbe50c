"""The dry check of an unreferenced evaluator: sufficient data, number of steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evalapp.translation import gettext as _
from scoring.ml.errors import EncoderError, InvalidOption, TrainingDataError
from scoring.ml.evaluators.unreferenced.conversations import (
    LEAST_HELD_OUT,
    Conversation,
    Sets,
    collect_conversations,
    groups_in,
    split_conversations,
)
from scoring.ml.evaluators.unreferenced.outputs import collect_outputs
from scoring.ml.evaluators.unreferenced.samples import KINDS, SEMANTIC, SYNTACTIC
from scoring.ml.evaluators.unreferenced.tools import LocalTextModel, ToolJob
from scoring.ml.training.frame import count_steps
from scoring.ml.training.job import FitJob, Plan

#: With fewer conversations there are neither useful false replies nor a held-out part.
LEAST = 10


def get_sets(job: FitJob) -> Sets:
    """Return the conversations of both parts of a `job`; without a dev part, a tenth of the groups is held out.

    Raises `TrainingDataError` if there are too few.
    """
    lower = job.flag("lower_case")
    train = collect_conversations(job.train, lower)
    _enough(job, train)
    dev = [] if job.dev is None else collect_conversations(job.dev, lower)
    if dev:
        broken = any(kind in SYNTACTIC for kind in KINDS[job.text("negatives")])
        if not broken and len(groups_in(dev)) < LEAST_HELD_OUT:
            text = "the held-out part is one conversation; false replies are taken from others: hold out two or more, "
            raise TrainingDataError(job.name, text + "or choose negatives that break replies, too (negatives=all).")
        return Sets(train, dev, ())
    part, held_out = split_conversations(train, job.seed)
    return Sets(part, held_out, ("A tenth of the conversations is held out to choose the weights.",))


def check(job: FitJob, *, reads: str) -> Plan:
    """Return the plan of a `job`: counts, steps and warnings. `reads` is that of the network.

    Raises `TrainingDataError` naming what is missing, `InvalidOption` for tools that are not folders or do not fit
    together, and `EncoderError` for folders without such a model.
    """
    if reads == "tokens" and job.encoder.words is None:
        raise EncoderError(job.encoder.name, "its config.json does not say vocab_size: copy the folder again")
    _check_tools(job)
    sets = get_sets(job)
    n = sum(one.n_replies for one in sets.train)
    kinds = KINDS[job.text("negatives")]
    broken = [kind for kind in SYNTACTIC if kind in kinds]
    n_false = len(broken) + len([kind for kind in SEMANTIC if kind in kinds and _there(job, kind)])
    steps = count_steps(job, n)
    notes = list(sets.notes)
    if job.optional_integer("patience") is not None:
        notes.append(_("It stops earlier when the held-out part no longer improves."))
    everyone = (*sets.train, *sets.dev)
    repeated = len(everyone) - len({one.turns for one in everyone})
    if repeated:
        notes.append(_("%(repeated)s conversations repeat another one word for word.") % {"repeated": f"{repeated:,}"})
    outputs = collect_outputs(job, sets, "train")
    if outputs:
        notes.append(_("%(n)s machine outputs are false replies.") % {"n": f"{len(outputs):,}"})
    if any(kind in kinds for kind in SEMANTIC) and not _there(job, "model_false"):
        text = _("Replies of models are left out unless own_outputs is chosen or a generator is named.")
        notes.append(text)
    examples = {"conversations": len(sets.train), "true replies": n, "false replies per true reply": n_false}
    return Plan(examples, steps, notes=tuple(notes), by_trials=True)


def _enough(job: FitJob, conversations: Sequence[Conversation]) -> None:
    if not conversations:
        text = _(
            "the data hold no dialogue of two turns, and no item with a context and a reference. Upload dialogues, "
            "or references to items with a context."
        )
        raise TrainingDataError(job.name, text)
    groups = len({one.group for one in conversations})
    if groups < LEAST:
        text = _(
            "%(groups)s conversations are too few: it needs at least %(least)s (or items of %(least)s "
            "groups), and is of use from some thousand on."
        )
        raise TrainingDataError(job.name, text, groups=groups, least=LEAST)
    replies = {turn for one in conversations for turn in one.turns[one.first :]}
    if len(replies) < LEAST:
        text = _("there are %(n_replies)s different replies: false replies cannot be drawn. Add other conversations.")
        raise TrainingDataError(job.name, text, n_replies=len(replies))


def _check_tools(job: FitJob) -> None:
    if isinstance(job, ToolJob) and job.tools is not None:
        return
    there, back = job.options["translator"], job.options["back_translator"]
    if job.options["paraphraser"] and (there or back):
        raise InvalidOption(job.name, "paraphraser", _("takes the place of both translators: name either"))
    if bool(there) != bool(back):
        missing = "back_translator" if there else "translator"
        raise InvalidOption(job.name, missing, _("is missing: translations go there and back, so name both folders"))
    if float(str(job.options["paraphrased"])) > 0 and not (there or job.options["paraphraser"]):
        text = _("needs a paraphraser, or translator and back_translator: name their folders")
        raise InvalidOption(job.name, "paraphrased", text)
    for option in ("generator", "translator", "back_translator", "paraphraser"):
        folder = job.options[option]
        if folder and not (Path(str(folder)) / "config.json").is_file():
            raise InvalidOption(job.name, option, _("%(folder)r is no folder of a transformers model"), folder=folder)
        if folder:
            LocalTextModel(str(folder), device=job.text("train_device")).check()


def _there(job: FitJob, kind: str) -> bool:
    """Whether a kind of false replies is available."""
    if kind == "rand_utt":
        return True
    if isinstance(job, ToolJob) and job.tools is not None:
        return (job.tools.generate if kind == "model_false" else job.tools.back_translate) is not None
    if kind == "model_false":
        return bool(job.options["generator"]) or job.flag("own_outputs")
    return bool(job.options["translator"] or job.options["paraphraser"])
