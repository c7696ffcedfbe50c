"""Ask the requests of a judge that have no stored answer, within budgets of money and time, and store the answers."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from evalapp.common.errors import BadInput
from evalapp.common.runner import RunContext
from scoring.ml.judges.reader import Key, make_key
from scoring.ml.judges.requests import BY_PROBABILITY

from ..selectors.judges import find_model, load_answers
from ..services.judges import store_answers

if TYPE_CHECKING:
    from scoring.ml.judges import Answer, Request
    from scoring.ml.judges.endpoint import Endpoint, Outcome
    from scoring.ml.judges.local import LocalJudge


class Sending:
    """The requests of a run. `model` is the id that the server reports, "" before the first answer; `spent` the cost so
    far; `stopped` is "budget" or "time" if that does not allow another request. `minutes` None: any time."""

    def __init__(
        self,
        context: RunContext,
        endpoint: Endpoint,
        budget: float | None,
        model: str = "",
        *,
        minutes: float | None = None,
    ) -> None:
        self.context, self.endpoint, self.budget, self.model = context, endpoint, budget, model
        self.spent = 0.0
        self.n_sent = self.n_stored = self.n_failed = self.prompt_tokens = self.completion_tokens = 0
        self.stopped = ""
        #: Reasons of failures in the log of the run, each once.
        self._logged: set[str] = set()
        self._reserved = 0.0
        self._end = None if minutes is None else time.monotonic() + 60 * minutes
        self._local: LocalJudge | None = None

    @property
    def figures(self) -> dict[str, Any]:
        return {
            "model": self.model, "answers": self.n_sent, "stored": self.n_stored, "failed": self.n_failed,
            "prompt_tokens": self.prompt_tokens, "completion_tokens": self.completion_tokens,
            "cost": round(self.spent, 6), "stopped": self.stopped,
        }  # fmt: skip

    def ask(self, requests: Sequence[Request]) -> dict[Key, Answer | str]:
        """Return the answer to each request, or the reason why it failed; nothing for requests beyond the budget."""
        wanted = {make_key(one): one for one in requests}
        project, name = self.context.project, self.endpoint.name
        self.model = self.model or find_model(project, name, wanted.values())
        result: dict[Key, Answer | str] = {}
        if self.model:
            result |= load_answers(project, name, self.model, list(wanted.values()))
        self.n_stored += len(result)
        missing = [one for key, one in wanted.items() if key not in result]
        if missing and not self.stopped:
            result |= self._send(missing)
        return result

    def _send(self, missing: Sequence[Request]) -> dict[Key, Answer | str]:
        result: dict[Key, Answer | str] = {}
        # Closed here, so that requests in flight are cut before the run ends.
        with closing(self._start(self._within_budget(missing))) as lists:
            for outcomes in lists:
                self.model = self.model or next((one.answer.model for one in outcomes if one.answer), "")
                # Answers of a new model are stored last, so that a judge under a new name continues with that model.
                outcomes.sort(key=lambda one: one.answer is not None and one.answer.model != self.model)
                self._store(outcomes)
                for one in outcomes:
                    result[make_key(one.request)] = one.reason if one.answer is None else one.answer
                self.context.progress(self.n_sent + self.n_stored, None, "answers", "judging")
                self._check_answers(outcomes)
                if self._local is not None and self._is_over():
                    break
        return result

    def _start(self, requests: Iterator[Request]) -> Generator[list[Outcome], None, None]:
        if not self.endpoint.folder:
            from scoring.ml.judges.client import send_requests

            return send_requests(self.endpoint, requests, self.context.check)
        if self._local is None:
            from scoring.ml.judges.local import LocalJudge

            self._local = LocalJudge(self.endpoint)
        return self._local.answer(requests, self.context.check)

    def _is_over(self) -> bool:
        if self._end is not None and time.monotonic() > self._end:
            self.stopped = "time"
        return bool(self.stopped)

    def _within_budget(self, missing: Sequence[Request]) -> Iterator[Request]:
        """Yield requests until their expected cost, with that of the requests in flight, exceeds the budget, or the
        time is over."""
        for request in missing:
            if self._is_over():
                return
            expected = self._expect(request)
            if self.budget is not None and self.spent + self._reserved + expected > self.budget:
                self.stopped = "budget"
                return
            self._reserved += expected
            yield request

    def _expect(self, request: Request) -> float:
        """Return a cost that few requests exceed: two characters per token, an answer of full length."""
        return self.endpoint.compute_cost(request.n_characters // 2 + 1, request.max_tokens)

    def _store(self, outcomes: Sequence[Outcome]) -> None:
        costs = []
        for one in outcomes:
            cost = 0.0
            if one.answer is None:
                self.n_failed += 1
                if one.reason not in self._logged:
                    self._logged.add(one.reason)
                    self.context.log(_("A request failed: %(why)s") % {"why": _(one.reason)})
            else:
                prompt, completion = one.answer.prompt_tokens, one.answer.completion_tokens
                if prompt is None or completion is None:
                    cost = self._expect(one.request)
                else:
                    cost = self.endpoint.compute_cost(prompt, completion)
                self.prompt_tokens += prompt or 0
                self.completion_tokens += completion or 0
                self.n_sent += 1
            costs.append(cost)
            self.spent += cost
            self._reserved -= self._expect(one.request)
        store_answers(run=self.context.run, endpoint=self.endpoint.name, outcomes=outcomes, costs=costs)

    def _check_answers(self, outcomes: Sequence[Outcome]) -> None:
        """Raise `BadInput` if the server reports another model, or leaves out the log-probabilities."""
        for one in outcomes:
            if one.answer is None:
                continue
            if one.answer.model != self.model:
                text = _(
                    "The endpoint now answers as the model %(new)s; the stored answers are by %(old)s. Scores of two "
                    "models are not mixed. Start the judge under a new name, which asks the new model for everything."
                )
                raise BadInput(text % {"new": one.answer.model, "old": self.model})
            if one.request.method in BY_PROBABILITY and not one.answer.tokens and not one.answer.refused:
                text = _("The endpoint %(name)s returns no log-probabilities. Use the method json.")
                raise BadInput(text % {"name": self.endpoint.name})
