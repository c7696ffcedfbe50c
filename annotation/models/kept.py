"""Texts of items in large blocks, which speed up searches. They can be rebuilt from the data and are not exported."""

from django.db import models

from evalapp.accounts.models import Project

from .ordered import NaturalOrder
from .visible import ProjectRows


class TextBlock(models.Model):
    """The texts of all items whose `order_key` is between `first_key` and that of the next block, in upper case as the
    database makes it, so that a search can skip blocks without a match. A null text has changed and must be rebuilt. A
    project without blocks is searched row by row."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    first_key = NaturalOrder()
    contexts = models.TextField(null=True)
    outputs = models.TextField(null=True)

    objects = ProjectRows.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "first_key"], name="one_text_block")]

    def __str__(self) -> str:
        return f"texts from {self.first_key}"
