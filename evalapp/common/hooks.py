"""Hooks by which apps take part in what evalapp does for a project or an installation, without being imported by it.
Apps register `module:function` in their `AppConfig.ready`; it is imported when the hook is first called."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def load_target(target: str | Callable[..., Any]) -> Any:
    """Return the object named `module:name`; objects are returned as they are."""
    if not isinstance(target, str):
        return target
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


class Hook:
    """Functions that are registered by name and called together."""

    def __init__(self) -> None:
        self._targets: list[str] = []

    def register(self, *targets: str) -> None:
        """Add `module:function` names; a name that is registered already is ignored."""
        self._targets += [target for target in targets if target not in self._targets]

    def call(self, *arguments: Any, **named: Any) -> list[Any]:
        """Call all functions in the order of their registration; return their results."""
        return [load_target(target)(*arguments, **named) for target in self._targets]

    def collect(self, *arguments: Any, **named: Any) -> list[Any]:
        """Call all functions; return the items of their results in one list."""
        return [item for result in self.call(*arguments, **named) for item in result]


class Provider(Generic[T]):
    """A function that another app provides; until one is registered, its substitute is called."""

    def __init__(self, substitute: Callable[..., T]) -> None:
        self.target: str | Callable[..., T] = substitute

    def register(self, target: str | Callable[..., T]) -> None:
        """Set the function, or its name `module:function`."""
        self.target = target

    def __call__(self, *arguments: Any, **named: Any) -> T:
        return load_target(self.target)(*arguments, **named)


@dataclass(frozen=True)
class BackupFile:
    """A file or folder below one of the roots in `backup.files.ROOTS`. `needed`: its row is useless without it.
    `follow`: replace symbolic links in it by the files they point to."""

    root: str
    path: str
    needed: bool = False
    follow: bool = False


@dataclass(frozen=True)
class OwnData:
    """A table of the data stored about a user: its name, a description, and JSON-ready rows."""

    name: str
    words: str
    rows: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Match:
    """A result of the search in a project: its kind, name and address, and a line of detail."""

    kind: Any
    title: str
    url: str
    detail: Any = ""


#: `(*, project, query, limit) -> Iterable[Match]`: objects that contain the text, at most `limit` of a kind.
SEARCHES = Hook()
#: `() -> list[Check]`: lines for `evalapp doctor`, asked only while the database responds.
DOCTOR_CHECKS = Hook()
#: `(*, project)`: remove a project's files, or close accounts, before its rows are deleted; may be called twice.
PROJECT_CLEANERS = Hook()
#: `(apps) -> Iterator[BackupFile]`: the files of an app's rows. It reads rows by `apps.get_model` and writes nothing.
BACKUP_FILES = Hook()
#: `(say) -> list[str]`: rebuild what backups do not contain; return a line for each task that is left for a person.
AFTER_RESTORE = Hook()
#: `(*, user) -> list[OwnData]`: the data stored about a user.
OWN_DATA = Hook()
#: `(*, user) -> dict[str, int]`: remove the texts that a user wrote; return counts by noun.
WITHDRAW_TEXTS = Hook()
#: `(*, run, state)`: called in the transaction that ends a run, with its final state. The run ends even if it fails.
RUN_ENDED = Hook()
#: `()`: record events that are found by looking, such as a campaign that is complete; called every half minute.
EVENT_FINDERS = Hook()
#: `(start, end)`: record the events on the progress from Monday `start` to Monday `end`; called every day.
WEEK_REPORTERS = Hook()
