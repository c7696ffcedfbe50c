"""What is kept beside the data so that searching answers at once: the texts of items in large blocks. They can be made
anew from the data and are not exported."""

from __future__ import annotations

from django.db import models

from evalapp.accounts.models import Project

from .ordered import NaturalOrder
from .visible import ProjectRows


class TextBlock(models.Model):
    """The texts of all items whose `order_key` lies between `first_key` and that of the next block, in capitals as the
    database makes them, so that one look tells whether a search can find anything there. A text that is null has
    changed and is to be made anew. A project without blocks is searched row by row."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    first_key = NaturalOrder()
    contexts = models.TextField(null=True)
    outputs = models.TextField(null=True)

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "first_key"], name="one_text_block")]

    def __str__(self) -> str:
        return f"texts from {self.first_key}"
