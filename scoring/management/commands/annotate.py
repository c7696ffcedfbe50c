"""`annotate`: the former name of `select_references`, which works until the release after 0.2.0."""

from .select_references import Command as SelectReferences


class Command(SelectReferences):
    help = "Former name of select_references; it will be removed in the release after 0.2.0."
