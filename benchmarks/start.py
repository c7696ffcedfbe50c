"""The time of `manage.py check`, and of the web process from its start to its first response; and that neither loads
torch. Prints JSON, seconds as min / median / max.

    python benchmarks/start.py [--runs 5]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

HEAVY = ("torch", "transformers", "scipy", "numpy")
LOADED = f"""
import json, sys
from django.test import Client
import evalapp.wsgi
assert Client(headers={{"host": "127.0.0.1"}}).get("/account/sign-in/").status_code == 200
print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))
"""


def spread(values: list[float]) -> dict[str, float]:
    return {"min": round(min(values), 3), "median": round(statistics.median(values), 3), "max": round(max(values), 3)}


def check(env: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "manage.py", "check"], env=env, cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - started


def first_answer(env: dict[str, str]) -> float:
    """From the start of gunicorn, as `manage.py up` starts it, to a usable page."""
    from evalapp.ops.ports import find_free_port
    from evalapp.ops.stack import web_answers

    port = find_free_port()
    command = [
        sys.executable, "-m", "gunicorn", "evalapp.wsgi:application", "--bind", f"127.0.0.1:{port}", "--preload",
        "--workers", "2", "--worker-class", "evalapp.ops.web.Worker",
        "--threads", "4", "--log-level", "error", "--no-control-socket",
    ]  # fmt: skip
    started = time.perf_counter()
    process = subprocess.Popen(command, env=env, cwd=ROOT)
    try:
        while not web_answers(f"http://127.0.0.1:{port}/account/sign-in/", timeout=5):
            if process.poll() is not None or time.perf_counter() - started > 60:
                raise SystemExit("The web process did not start.")
            time.sleep(0.01)
        return time.perf_counter() - started
    finally:
        process.terminate()
        process.wait(20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory(prefix="evalapp-start-") as folder:
        env = {**os.environ, "EVALAPP_DATA": folder, "DJANGO_SETTINGS_MODULE": "evalapp.settings"}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        for words in (("migrate", "-v0"), ("collectstatic", "--noinput", "-v0")):
            subprocess.run([sys.executable, "manage.py", *words], env=env, cwd=ROOT, check=True)
        done = subprocess.run(
            [sys.executable, "-c", LOADED], env=env, cwd=ROOT, check=True, capture_output=True, text=True
        )
        check(env)  # compiles what is not compiled yet
        report = {
            "benchmark": "start",
            "runs": runs,
            "load": round(os.getloadavg()[0], 1),
            "check_seconds": spread([check(env) for _ in range(runs)]),
            "first_answer_seconds": spread([first_answer(env) for _ in range(runs)]),
            "loaded_by_the_web_process": json.loads(done.stdout.splitlines()[-1]),
            "aims": {"seconds": 1.5, "torch": "not loaded"},
        }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
