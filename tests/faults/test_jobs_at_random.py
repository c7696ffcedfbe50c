"""Workers killed with SIGKILL at random moments: every run ends as if undisturbed. `SOAK_KILLS` is the number of kills
per kind. A separate file, so that it runs in parallel with `test_jobs`."""

from __future__ import annotations

import os
import random

import pytest

from evalapp.common.models import Run

from . import jobs_house
from .jobs_house import ended, kill_after, losses, on

pytestmark = [pytest.mark.slow, pytest.mark.promise("job")]
house = jobs_house.house

KILLS = int(os.environ.get("SOAK_KILLS", "4"))
SEED = os.environ.get("SOAK_SEED", "13")
RANDOM_KINDS = ("import", "score", "train", "annotate", "export")


@on(*(("postgres", "sqlite") if "SOAK_KILLS" in os.environ else ("postgres",)))
@pytest.mark.parametrize("kind", RANDOM_KINDS)
def test_run_killed_at_random_moments_has_the_same_result(house, kind, record_property):
    """Each kill falls into its own part of an undisturbed run's duration."""
    done, whole, seconds = house.undisturbed(f"long {kind}")
    rng = random.Random(f"{SEED} {kind}")
    for number in range(KILLS):
        share = (number + rng.random()) / KILLS
        for _ in range(6):
            moment = seconds * share
            run = done.begin()
            hit = kill_after(run, moment)
            run = ended(run)
            assert run.state == Run.State.SUCCEEDED, f"killed after {moment:.3f} s of {seconds:.3f}: {run.error}"
            assert done.result(run) == whole, f"killed after {moment:.3f} s of {seconds:.3f}"
            house.nothing_is_left(run)
            # A kill at the very moment of the end costs nothing.
            assert (run.attempt, losses(run)) in ([(2, 1), (1, 0)] if hit else [(1, 0)])
            done.clear(run)
            if hit:
                break
            # It finished undisturbed: this is its duration now that the machine is less busy.
            seconds = (run.finished_at - run.started_at).total_seconds()
            share *= 0.8
        assert hit
    record_property("figure", f"{kind} killed {KILLS} times at random moments, the same result each time")
