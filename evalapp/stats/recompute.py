"""Alias of `python -m scoring.boards.recompute FOLDER`: compute the tables of an export again, without Django.

Exports name this module, so it stays. `evalapp` imports nothing from `scoring`; the module is run by its name."""

import runpy

from evalapp.layout import prefer_own_packages

if __name__ == "__main__":
    prefer_own_packages()
    runpy.run_module("scoring.boards.recompute", run_name="__main__", alter_sys=True)
