"""Stands in for `scoring.ml.training.process`: the same messages, no training; the job's profile decides its
behaviour."""

from __future__ import annotations

import os
import pickle
import sys
import time

from scoring.ml.training.process import LENGTH_BYTES, _channel, _listen, _read


def main() -> int:
    say = _channel()
    job = pickle.loads(_read(int.from_bytes(_read(LENGTH_BYTES), "big")))
    rank = int(os.environ["RANK"])
    if job.profile == "silent" and rank == 1:
        return 7
    if job.profile == "killed":
        if rank == 1:
            os.kill(os.getpid(), 9)
        # The message of a process that lost another one; it may arrive earlier.
        time.sleep(0.1)
        say({"failed": True})
    if job.profile == "done":
        print(*(os.environ[name] for name in ("LOCAL_RANK", "WORLD_SIZE", "OMP_NUM_THREADS")), file=sys.stderr)
        return 0
    (job.folder / f"pid-{rank}").write_text(str(os.getpid()))
    _listen(None)  # type: ignore[arg-type]
    return 0


if __name__ == "__main__":
    sys.exit(main())
