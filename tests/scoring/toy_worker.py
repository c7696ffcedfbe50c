"""Imported by the workers of tests (`--include`): the toy evaluator stands in their catalogue, too."""

from __future__ import annotations

from types import SimpleNamespace

from scoring.ml import registry
from tests.scoring.ml.training.toy_entry import ENTRY

registry._MODULES = (*registry._MODULES, SimpleNamespace(ENTRIES=(ENTRY,)))  # type: ignore[assignment]
registry.catalogue.cache_clear()
