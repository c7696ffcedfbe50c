"""The one inference engine: distinct inputs, sorted by token length, in batches of a token budget.

It halves its batches and continues when memory runs out. Encoders and evaluators provide token numbers and a forward
function. torch is imported when a batch runs, not before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from scoring.ml.encodings import Encoding as Encoding
from scoring.ml.encodings import Encodings as Encodings
from scoring.ml.errors import ScoringError
from scoring.ml.option_checks import device as check_device

if TYPE_CHECKING:
    import torch

H = TypeVar("H", bound=Hashable)
T = TypeVar("T")
Ints: TypeAlias = npt.NDArray[np.int64]
Dtype: TypeAlias = Literal["fp32", "bf16"]
# On a CPU, activations should fit into the cache: 1,024 tokens of a 384 wide encoder were fastest of 512 to 8,192.
CPU_BATCH_TOKENS = 1024
GPU_BATCH_TOKENS = 65536
# Items tokenised at a time: enough that sorting them by length leaves little padding.
CHUNK_ITEMS = 32768


class Batch(NamedTuple):
    """Padded tensors (rows, longest) on the engine's device; `attention_mask` is 1 for tokens.

    `lengths` (rows,) are the numbers of tokens; the engine's batches are sorted by them.
    """

    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    token_type_ids: torch.Tensor | None
    lengths: Ints

    @property
    def inputs(self) -> dict[str, torch.Tensor]:
        """The keyword arguments of an encoder."""
        given = {"input_ids": self.input_ids, "attention_mask": self.attention_mask}
        return given if self.token_type_ids is None else {**given, "token_type_ids": self.token_type_ids}


Forward: TypeAlias = Callable[[Batch], "torch.Tensor"]


def resolve_device(device: str) -> str:
    """The device to use: `auto` is the first GPU if there is one, else the CPU. Raises `ScoringError` for any other
    name, and for a GPU that this machine lacks."""
    import torch

    if wrong := check_device(device):
        raise ScoringError(f"device {wrong}")
    if absent := absent_device(device):
        raise ScoringError(f"device {device!r}: {absent}")
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return device


def absent_device(device: str) -> str:
    """The reason why this machine lacks a device and which one to take; "" if it has it."""
    import torch

    if not device.startswith("cuda"):
        return ""
    if not torch.cuda.is_available():
        return "this machine has no GPU that torch can use: take cpu or auto"
    if int(device.partition(":")[2] or 0) >= torch.cuda.device_count():
        return f"the last GPU that torch can use here is cuda:{torch.cuda.device_count() - 1}"
    return ""


def deduplicate(inputs: Sequence[H]) -> tuple[list[H], Ints]:
    """The distinct inputs in order of first appearance, and the place of each input among them."""
    number: dict[H, int] = {}
    places = np.fromiter((number.setdefault(value, len(number)) for value in inputs), np.int64, len(inputs))
    return list(number), places


def plan_batches(lengths: Sequence[int] | Ints, batch_tokens: int) -> list[Ints]:
    """Return the rows of each batch, longest first, so that memory fails early; the padded size is at most
    `batch_tokens`.

    `lengths` (n,) are the tokens of each input. A batch that is at least a quarter full ends where the length changes:
    padding costs more than a smaller batch. An input longer than the budget is a batch of its own.
    """
    sizes = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-sizes, kind="stable")
    falling = sizes[order]
    changes = np.flatnonzero(np.diff(falling)) + 1
    batches: list[Ints] = []
    start = 0
    while start < len(order):
        longest = max(1, int(falling[start]))
        end = min(len(order), start + max(1, batch_tokens // longest))
        # The last change of length inside the batch, if the rows before it fill a quarter of the budget.
        place = int(np.searchsorted(changes, end)) - 1
        cut = int(changes[place]) if place >= 0 else 0
        if (cut - start) * longest * 4 >= batch_tokens and cut > start:
            end = cut
        batches.append(order[start:end])
        start = end
    return batches


def collate(encodings: Sequence[Encoding], pad_id: int, device: str) -> Batch:
    """Return the `encodings` as one batch on `device`, padded on the right with `pad_id` to the longest."""
    import torch

    result = Encodings.of(encodings)
    lengths = result.lengths
    shape = (len(result), int(lengths.max()))
    mask = np.arange(shape[1])[None, :] < lengths[:, None]
    ids = np.full(shape, pad_id, dtype=np.int64)
    ids[mask] = result.ids
    types: torch.Tensor | None = None
    if result.type_ids is not None:
        filled = np.zeros(shape, dtype=np.int64)
        filled[mask] = result.type_ids
        types = torch.from_numpy(filled).to(device)
    attention = torch.from_numpy(mask.astype(np.int64)).to(device)
    return Batch(torch.from_numpy(ids).to(device), attention, types, lengths)


class Engine:
    """Runs a forward function over inputs of any length and number.

    Results do not depend on batch size or neighbours beyond rounding (fp32 1e-5), nor on the order of inputs.
    After memory ran out once `batch_tokens` stays halved.
    """

    def __init__(self, *, device: str = "auto", batch_tokens: int | None = None, pad_id: int = 0) -> None:
        self.device = resolve_device(device)
        default = CPU_BATCH_TOKENS if self.device == "cpu" else GPU_BATCH_TOKENS
        self.batch_tokens = batch_tokens or default
        self.pad_id = pad_id

    def batches(self, encodings: Sequence[Encoding], forward: Forward) -> Iterator[tuple[Ints, torch.Tensor]]:
        """Rows and output of each batch, in an order that suits the engine. Inputs are taken as distinct.

        `forward` gets a `Batch` and returns a tensor with one row per input. Raises `ScoringError` when a
        single input does not fit into memory.
        """
        import torch

        inputs = Encodings.of(encodings)
        lengths = inputs.lengths
        waiting = deque(plan_batches(lengths, self.batch_tokens))
        while waiting:
            rows = waiting.popleft()
            try:
                with torch.inference_mode():
                    output = forward(collate(inputs.take(rows), self.pad_id, self.device))
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
                self._free()
                if len(rows) == 1:
                    length = int(lengths[rows[0]])
                    message = f"a text of {length} tokens does not fit into memory: lower max_length"
                    raise ScoringError(message) from error
                self.batch_tokens = max(1, min(self.batch_tokens, int(lengths[rows[0]]) * len(rows)) // 2)
                left = np.concatenate([rows, *waiting])
                replanned = plan_batches(lengths[left], self.batch_tokens)
                waiting = deque(left[batch] for batch in replanned)
                continue
            yield rows, output

    def map(
        self, encodings: Sequence[Encoding], forward: Forward, *, report: Callable[[float], object] | None = None
    ) -> torch.Tensor:
        """One fixed-size float32 result per input, on the CPU, in the order of the inputs; duplicates run once.

        `report(share)` receives the share of tokens done after each batch.
        """
        import torch

        unique, places = Encodings.of(encodings).distinct()
        results: torch.Tensor | None = None
        done = 0
        for rows, output in self.batches(unique, forward):
            if results is None:
                results = torch.empty((len(unique), *output.shape[1:]), dtype=torch.float32)
            results[torch.from_numpy(rows)] = output.float().cpu()
            done += int(unique.lengths[rows].sum())
            if report is not None:
                report(done / max(unique.n_tokens, 1))
        if results is None:
            return torch.empty(0)
        return results[torch.from_numpy(places)]

    def score(
        self,
        items: Sequence[T],
        tokenize: Callable[[Sequence[T]], Any],
        forward: Forward,
        *,
        progress: Callable[[int, int], object] | None = None,
        run: Callable[..., torch.Tensor] | None = None,
    ) -> tuple[torch.Tensor, npt.NDArray[np.bool_]]:
        """`map` over any number of items in constant memory; also marks the truncated items.

        `tokenize` returns `encodings` and `truncated`. `run(encodings, report=...)` is used instead of `map` if given.

        Only `CHUNK_ITEMS` items are tokenised at a time. `progress(done, total)` counts items after every batch; an
        exception it raises ends the work.
        """
        import torch

        results: list[torch.Tensor] = []
        truncated = np.zeros(len(items), dtype=np.bool_)
        for start in range(0, len(items), CHUNK_ITEMS):
            chunk = items[start : start + CHUNK_ITEMS]
            tokenized = tokenize(chunk)
            truncated[start : start + len(chunk)] = tokenized.truncated

            def report(share: float, start: int = start, size: int = len(chunk)) -> None:
                if progress is not None:
                    progress(start + int(share * size), len(items))

            encodings = tokenized.encodings
            results.append(
                self.map(encodings, forward, report=report) if run is None else run(encodings, report=report)
            )
        return torch.cat(results) if results else torch.empty(0), truncated

    def _free(self) -> None:
        import torch

        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()


def is_out_of_memory(error: RuntimeError) -> bool:
    """Return whether an `error` of torch says that GPU or main memory is exhausted."""
    import torch

    return isinstance(error, torch.OutOfMemoryError) or "not enough memory" in str(error)
