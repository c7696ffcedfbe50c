"""Evaluators of generated text as a library: another name of the package `scoring.ml`, and the one to import where
`evalapp` is installed as a package.

from evalapp.ml import catalogue, fit, load, read_dataset
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scoring.ml import *  # noqa: F403
else:
    from evalapp.layout import add_alias

    add_alias(__name__, "scoring.ml")
