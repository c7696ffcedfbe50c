"""Where the parts of the product are: next to the package `evalapp` in a checkout, inside it in an installed wheel, so
that a wheel installs no package with a name as common as `scoring` (docs/decisions/one-package-in-the-wheel.md).

`evalapp.ml` and `evalapp.index` are other names of `scoring.ml` and `retrieval.index`.
"""

import shutil
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from evalapp.extras import explain_install

_INCLUDED = Path(__file__).resolve().parent / "_included"
#: Folder with templates, static files and documents.
FILES = _INCLUDED if _INCLUDED.is_dir() else _INCLUDED.parent.parent
#: Folder of the packages `annotation`, `retrieval` and `scoring`.
PACKAGES = _INCLUDED / "packages" if _INCLUDED.is_dir() else FILES
_NAMES = ("annotation", "retrieval", "scoring")


def find_program() -> str:
    """The program `evalapp` as one types it here: its name if it is on the PATH, otherwise its path."""
    program = Path(sys.executable).with_name("evalapp")
    if not program.is_file() or shutil.which("evalapp") == str(program):
        return "evalapp"
    here = Path.cwd()
    return str(program.relative_to(here)) if program.is_relative_to(here) else str(program)


def prefer_own_packages() -> None:
    """Put the folder of `annotation`, `retrieval` and `scoring` before other places with such modules.

    Raises `ImportError` if another module called `annotation`, `retrieval` or `scoring` is already imported.
    """
    for name in _NAMES:
        other = sys.modules.get(name)
        where = getattr(other, "__file__", None)
        if other is not None and not (where and Path(where).resolve().is_relative_to(PACKAGES)):
            raise ImportError(
                f"evalapp has a package `{name}`, and another module with this name is already imported from "
                f"{where or 'an unknown place'}. Rename that module, or use the two in separate processes."
            )
    if not all(map(_is_own, _NAMES)):
        sys.path.insert(0, str(PACKAGES))


def _is_own(name: str) -> bool:
    """Return whether an import of this package would find ours."""
    spec = None if name in sys.modules else find_spec(name)
    return name in sys.modules or (spec is not None and Path(spec.origin or "/").resolve().parent == PACKAGES / name)


class _Alias(MetaPathFinder, Loader):
    """Finds `alias.x` as the module `name.x`, so that both names mean the same module object."""

    def __init__(self, alias: str, name: str) -> None:
        self._alias, self._name = alias, name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{self._alias}."):
            return None
        spec = find_spec(self._resolve(fullname))
        return spec and ModuleSpec(fullname, self, is_package=spec.submodule_search_locations is not None)

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = import_module(self._resolve(module.__name__))

    def _resolve(self, fullname: str) -> str:
        return self._name + fullname.removeprefix(self._alias)


def add_alias(alias: str, name: str) -> None:
    """Make `alias` and the modules below it other names of the package `name`, which needs the extra `metrics`."""
    prefer_own_packages()
    try:
        sys.modules[alias] = import_module(name)
    except ModuleNotFoundError as error:
        text = f"{alias} needs the package {error.name}. {explain_install('metrics')}"
        raise ModuleNotFoundError(text, name=error.name) from error
    sys.meta_path.insert(0, _Alias(alias, name))
