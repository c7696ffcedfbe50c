"""Ports: what rooms downstream tell this room, so that it need not know them. They register in their
`AppConfig.ready`; nothing here imports them.

A *dependant* answers what of its own rests on the rows of an upload, so that undo can be refused with the list,
and on an output, so that its text is not replaced under a judgement::

    # scoring/apps.py
    from annotation.services import ports
    ports.register_dependant("scores", "scoring.selectors.dependants:count_of_upload")

    # scoring/selectors/dependants.py
    def count_of_upload(*, upload) -> int:      # rows that would lose what they are about
        return Score.objects.filter(output__upload=upload).count()

A *listener* is told, inside the transaction, that rows changed: `(*, project, table, ids)`, `ids` being primary keys,
or None for "many"."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

_DEPENDANTS: dict[str, str | Callable[..., int]] = {}
_JUDGED: dict[str, str | Callable[..., Iterable[int]]] = {}
_LISTENERS: dict[str, str | Callable[..., None]] = {}


def _resolve(target: Any) -> Callable[..., Any]:
    if isinstance(target, str):
        module, _, name = target.partition(":")
        return getattr(import_module(module), name)
    return target


def register_dependant(name: str, count: str | Callable[..., int]) -> None:
    """`count(*, upload) -> int`: how many `name` (a plural noun for people) rest on rows that `upload` brought.
    A string `module:function` is imported at its first use."""
    _DEPENDANTS[name] = count


def register_judged(name: str, judged: str | Callable[..., Iterable[int]]) -> None:
    """`judged(*, output_ids) -> those of them that people are judging or have judged`, beside ratings and
    comparisons, which this room knows itself."""
    _JUDGED[name] = judged


def register_listener(name: str, changed: str | Callable[..., None]) -> None:
    """`changed(*, project, table, ids)`: rows of `table` (items, outputs, ...) were replaced or removed."""
    _LISTENERS[name] = changed


def dependants(upload: Any) -> list[tuple[str, int]]:
    """What rests on the upload, as (name, count), without the zeros."""
    found = [(name, int(_resolve(count)(upload=upload))) for name, count in sorted(_DEPENDANTS.items())]
    return [(name, count) for name, count in found if count]


def judged_elsewhere(output_ids: list[int]) -> set[int]:
    return {found for judged in _JUDGED.values() for found in _resolve(judged)(output_ids=output_ids)}


def tell_changed(*, project: Any, table: str, ids: list[int] | None = None) -> None:
    for changed in _LISTENERS.values():
        _resolve(changed)(project=project, table=table, ids=ids)
