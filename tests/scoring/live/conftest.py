"""A real installation for trainings and online scores."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cast import Cast, make_cast
from tests.evalapp.common.conftest import Installation, file_database, installation
from tests.scoring.training import fill, put_toy_into_catalogue

__all__ = ["file_database", "installation"]


@pytest.fixture
def house(installation: Installation, settings, monkeypatch) -> Installation:
    """The installation, whose data folder the tests share, with the toy evaluator in this process's catalogue."""
    from scoring.ml import registry

    settings.ARTEFACTS_DIR = Path(installation.env["EVALAPP_DATA"]) / "artefacts"
    put_toy_into_catalogue(monkeypatch)
    yield installation
    registry.catalogue.cache_clear()


@pytest.fixture
def people(house) -> Cast:
    """The cast in that installation, with rated outputs."""
    made = make_cast()
    fill(made.project)
    return made
