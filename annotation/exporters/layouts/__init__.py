"""Layouts of an export for other programs. They hold what the other program reads, so most of them cannot recreate a
project; the formats of tables (`annotation.exporters.formats`) do."""

from importlib import import_module

from .base import ItemRows, Layout, Plan, group_by_item

#: The class of each layout, which is imported on first use.
_LAYOUTS = {
    "xlsx": "workbook:Workbook",
    "wide-csv": "wide:WideCsv",
    "preferences": "preferences:Preferences",
    "mt-metrics-eval": "mt_metrics_eval:MtMetricsEval",
    "label-studio": "label_studio:LabelStudio",
    "argilla": "argilla:Argilla",
}
LAYOUTS = tuple(_LAYOUTS)


def get_layout(name: str) -> type[Layout]:
    """The layout with a name of `LAYOUTS`."""
    module, _, kind = _LAYOUTS[name].partition(":")
    made: type[Layout] = getattr(import_module(f"{__name__}.{module}"), kind)
    return made


__all__ = ["LAYOUTS", "ItemRows", "Layout", "Plan", "get_layout", "group_by_item"]
