"""Alias of `python -m scoring.boards.recompute FOLDER`: compute the tables of an export again, without Django.

Exports name this module, so it stays. `evalapp` imports nothing from `scoring`; the module is run by its name."""

import runpy

if __name__ == "__main__":
    runpy.run_module("scoring.boards.recompute", run_name="__main__", alter_sys=True)
