"""Stands in for `scoring.ml.training.process`: the same messages, no training; the job's profile decides its
behaviour."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time

from scoring.ml.training.process import listen, open_channel


def main() -> int:
    owner, say = open_channel()
    job = pickle.loads(owner.recv_bytes())
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
    listen(owner, threading.Semaphore())
    return 0


if __name__ == "__main__":
    sys.exit(main())
