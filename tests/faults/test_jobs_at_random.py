"""Workers are killed with SIGKILL at random moments: every run ends as if undisturbed. `SOAK_KILLS` is the number of
kills for each kind. A separate module, so that it runs in parallel with `test_jobs`."""

from __future__ import annotations

import os
import random

import pytest

from evalapp.common.models import Run

from . import job_installation
from .job_installation import count_losses, kill_after, on_databases, wait_for_end

pytestmark = [pytest.mark.slow, pytest.mark.promise("job")]
installation = job_installation.installation

KILLS = int(os.environ.get("SOAK_KILLS", "4"))
SEED = os.environ.get("SOAK_SEED", "13")
RANDOM_KINDS = ("import", "score", "train", "select-references", "export")


@on_databases(*(("postgres", "sqlite") if "SOAK_KILLS" in os.environ else ("postgres",)))
@pytest.mark.parametrize("kind", RANDOM_KINDS)
def test_run_killed_at_random_moments_has_the_same_result(installation, kind, record_property):
    """The duration of an undisturbed run is divided into equal parts, with one kill in each."""
    case, expected, seconds = installation.run_undisturbed(f"long {kind}")
    rng = random.Random(f"{SEED} {kind}")
    for number in range(KILLS):
        share = (number + rng.random()) / KILLS
        for _ in range(6):
            moment = seconds * share
            run = case.begin()
            hit = kill_after(run, moment)
            run = wait_for_end(run)
            assert run.state == Run.State.SUCCEEDED, f"killed after {moment:.3f} s of {seconds:.3f}: {run.error}"
            assert case.result(run) == expected, f"killed after {moment:.3f} s of {seconds:.3f}"
            installation.assert_nothing_is_left(run)
            # A kill at the very end costs no attempt.
            assert (run.attempt, count_losses(run)) in ([(2, 1), (1, 0)] if hit else [(1, 0)])
            case.clear(run)
            if hit:
                break
            # The run ended before the kill: use its duration, because the machine is less busy now.
            seconds = (run.finished_at - run.started_at).total_seconds()
            share *= 0.8
        assert hit
    record_property("figure", f"{kind} killed {KILLS} times at random moments, the same result each time")
