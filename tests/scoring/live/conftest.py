"""A real installation for trainings and online scores, one per file: workers take seconds to start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from tests.cast import Cast, make_cast
from tests.evalapp.common.conftest import Installation, database_file, installed
from tests.scoring.training import fill, put_toy_into_catalogue
from tests.services.plugin import empty_redis


@pytest.fixture(scope="module")
def house(
    tmp_path_factory: pytest.TempPathFactory, migrated_file: Path, django_db_blocker: Any
) -> Iterator[Installation]:
    """The installation, whose data folder the tests share, with the toy evaluator in this process's catalogue."""
    from scoring.ml import registry

    with (
        database_file(tmp_path_factory.mktemp("house"), migrated_file, django_db_blocker) as folder,
        empty_redis() as url,
        installed(folder, url) as found,
        override_settings(ARTEFACTS_DIR=folder / "artefacts"),
        pytest.MonkeyPatch.context() as patch,
    ):
        put_toy_into_catalogue(patch)
        yield found
    registry.catalogue.cache_clear()


@pytest.fixture(scope="module")
def people(house: Installation) -> Cast:
    """The cast in that installation, with rated outputs."""
    made = make_cast()
    fill(made.project)
    return made
