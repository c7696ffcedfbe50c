"""Judges in folders: causal and sequence-to-sequence language models, and reward models, read by transformers.

By log-probabilities nothing is generated: each label gets the probability of its tokens after the prompt, exactly. Only
safetensors are read, and no code of a folder is run. Chat templates are those of the tokenizer.
"""

from __future__ import annotations

import copy
import inspect
import json
import math
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from evalapp.translation import gettext as _
from evalapp.translation import gettext_noop
from scoring.ml.encodings import Encoding
from scoring.ml.errors import EncoderError, ScoringError
from scoring.ml.judges.answers import LEAST_LOGPROB, Answer
from scoring.ml.judges.endpoint import Endpoint, EndpointError, Outcome
from scoring.ml.judges.prompts import select_controls
from scoring.ml.judges.requests import Request
from scoring.ml.signature import file_hash, text_hash

if TYPE_CHECKING:
    import torch

    from scoring.ml.encoders.loading import AutoKind
    from scoring.ml.engine import Batch, Engine

Kind: TypeAlias = Literal["causal", "seq2seq", "reward"]
Tokens: TypeAlias = tuple[int, ...]
#: Requests that are sorted by length together.
LOT = 256
TOO_LONG = gettext_noop("the prompt is longer than the model reads")
_CLASSES: dict[Kind, AutoKind] = {
    "causal": "AutoModelForCausalLM", "seq2seq": "AutoModelForSeq2SeqLM",
    "reward": "AutoModelForSequenceClassification",
}  # fmt: skip
#: Their outputs at a token are about that token, which they have read, and not about the next one.
_BOTH_WAYS = ("XLNetLMHeadModel", "WithLMHeadModel")
#: Files next to the weights that change what a model answers.
_FILES = (
    "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
    "special_tokens_map.json",
)  # fmt: skip


@dataclass(frozen=True)
class FolderFacts:
    """Kind of a model and its special tokens in unusual forms, which texts must not contain."""

    kind: Kind
    controls: tuple[str, ...]


def read_facts(endpoint: Endpoint) -> FolderFacts:
    """Return the kind of the model in a folder from its configuration, without reading weights. Raises
    `EndpointError` if it is none that can judge; messages have the name of the endpoint, never the folder."""
    folder = Path(endpoint.folder)
    config = _read_json(endpoint, folder / "config.json")
    names = config.get("architectures")
    architecture = str(names[0]) if isinstance(names, list) and names else ""
    if architecture.endswith(("ForCausalLM", "LMHeadModel")) and not architecture.endswith(_BOTH_WAYS):
        kind: Kind = "causal"
    elif architecture.endswith("ForConditionalGeneration"):
        kind = "seq2seq"
    elif architecture.endswith("ForSequenceClassification"):
        kind = "reward"
        labels = config.get("id2label")
        n = len(labels) if isinstance(labels, dict) else config.get("num_labels", 2)
        if n != 1:
            text = _("a reward model gives one number, this model gives %(n)s") % {"n": n}
            raise EndpointError(_explain(endpoint, text))
    else:
        text = _("a model of the kind %(kind)s cannot judge; take a causal, sequence-to-sequence or reward model")
        raise EndpointError(_explain(endpoint, text % {"kind": architecture or "?"}))
    file = folder / "tokenizer.json"
    added = _read_json(endpoint, file).get("added_tokens") if file.is_file() else None
    rows = [row for row in added or () if isinstance(row, dict) and row.get("special")]
    tokens = [str(row.get("content", "")) for row in rows]
    return FolderFacts(kind, select_controls(token for token in tokens if "unk" not in token.lower()))


def _read_json(endpoint: Endpoint, path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        text = _("its %(file)s is missing or cannot be read") % {"file": path.name}
        raise EndpointError(_explain(endpoint, text))
    return content


def _explain(endpoint: Endpoint, why: str) -> str:
    return _("The model of the endpoint %(name)s cannot be used: %(why)s.") % {"name": endpoint.name, "why": why}


class LocalJudge:
    """A loaded model that answers requests. Raises `EndpointError` if its folder cannot be used."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.kind = read_facts(endpoint).kind
        try:
            self._load()
        except EndpointError:
            raise
        except ScoringError as error:
            raise EndpointError(_explain(endpoint, str(error).replace(endpoint.folder, endpoint.name))) from error

    def _load(self) -> None:
        from scoring.ml.encoders.causal import GPU_BATCH_TOKENS
        from scoring.ml.encoders.loading import load_pretrained, load_tokenizer
        from scoring.ml.encoders.source import find_encoder
        from scoring.ml.engine import Engine

        if not Path(self.endpoint.folder).is_dir():
            raise EncoderError(self.endpoint.name, "its folder is missing")
        self.source = replace(find_encoder(self.endpoint.folder), name=self.endpoint.name)
        self.tokenizer: Any = load_tokenizer(self.source)
        model = load_pretrained(self.source, _CLASSES[self.kind], dtype=self.endpoint.dtype)
        own = (model.config.pad_token_id, self.tokenizer.pad_token_id, self.tokenizer.eos_token_id)
        pad = next((int(one) for one in own if isinstance(one, int) and one >= 0), 0)
        tokens = self.endpoint.batch_tokens
        self.engine: Engine = Engine(device=self.endpoint.device, batch_tokens=tokens, pad_id=pad)
        if tokens is None and self.engine.device != "cpu":
            # A token's output is as wide as the vocabulary.
            self.engine.batch_tokens = GPU_BATCH_TOKENS
        self.model: Any = cast("Any", model).to(self.engine.device)
        self._arguments = frozenset(inspect.signature(model.forward).parameters)
        self._is_pad_free = model.config.pad_token_id is None
        positions = self.source.config.get("n_positions")
        # Relative positions have no limit but that of the tokenizer.
        self.max_length = self.source.max_length(positions if isinstance(positions, int) else 1 << 20)

    @cached_property
    def model_id(self) -> str:
        """Name of the folder, and a hash of the weights and everything else that changes answers."""
        folder = self.source.folder
        parts = [f"{name}:{file_hash(folder / name)}" for name in _FILES if (folder / name).is_file()]
        digest = text_hash([self.source.weights, self.endpoint.dtype, *parts], length=12)
        return f"{Path(self.endpoint.folder).name[:180]}@{digest}"

    def answer(self, requests: Iterable[Request], check: Callable[[], None]) -> Generator[list[Outcome], None, None]:
        """Answer `requests` and yield outcomes in lists, one for each batch. `check` is called before each batch and
        may raise to stop."""
        waiting = iter(requests)
        while lot := list(islice(waiting, LOT)):
            yield from self._answer_lot(lot, check)

    def _answer_lot(self, lot: Sequence[Request], check: Callable[[], None]) -> Generator[list[Outcome], None, None]:
        first = lot[0]
        if any(
            (one.method, one.labels, one.temperature) != (first.method, first.labels, first.temperature) for one in lot
        ):
            raise ValueError("the requests must be made by the same judge")
        check()
        forward, room, read = self._prepare(first)
        encodings = [self.encode(one) for one in lot]
        fits = [len(one.ids) + room <= self.max_length for one in encodings]
        if not all(fits):
            yield [_settled(one, None, TOO_LONG) for one, is_short in zip(lot, fits, strict=True) if not is_short]
        rest = [place for place, is_short in enumerate(fits) if is_short]
        if not rest:
            return
        began = time.monotonic()
        for rows, output in self.engine.batches([encodings[place] for place in rest], forward):
            seconds = (time.monotonic() - began) / len(rows)
            outcomes = []
            for row, values in zip(rows.tolist(), output.double().cpu().tolist(), strict=True):
                place = rest[row]
                answer = replace(
                    read(values), model=self.model_id, prompt_tokens=len(encodings[place].ids), seconds=seconds
                )
                outcomes.append(_settled(lot[place], answer, ""))
            yield outcomes
            check()
            began = time.monotonic()

    def _prepare(self, first: Request) -> tuple[Callable[[Batch], torch.Tensor], int, Callable[[list[float]], Answer]]:
        """Return the forward function for requests such as `first`, the tokens of an answer that share the positions of
        the prompt, and the function that makes the answer of a row."""
        if self.kind == "reward":
            return self._reward, 0, lambda values: Answer(repr(values[0]), "", "stop", completion_tokens=0)
        if first.labels:
            paths = self._encode_labels(first.labels)
            room = max(map(len, paths.ids)) if self.kind == "causal" else 0
            return partial(self._weigh, paths=paths), room, paths.make_answer
        room = first.max_tokens if self.kind == "causal" else 0
        return partial(self._generate, request=first), room, partial(self._decode, most=first.max_tokens)

    # ---- prompts ----------------------------------------------------------------------------------------------

    def encode(self, request: Request) -> Encoding:
        """Return the tokens of a request, by the chat template if the tokenizer has one."""
        messages = [{"role": role, "content": text} for role, text in request.messages]
        if self.kind != "seq2seq" and getattr(self.tokenizer, "chat_template", None):
            found = self.tokenizer(self._fill_chat(messages), add_special_tokens=False)
        elif self.kind == "reward":
            found = self.tokenizer(*(one["content"] for one in messages))
        else:
            found = self.tokenizer("\n\n".join(one["content"] for one in messages).rstrip())
        types = found.get("token_type_ids") if self.kind == "reward" and "token_type_ids" in self._arguments else None
        return Encoding(tuple(found["input_ids"]), None if types is None else tuple(types))

    def _fill_chat(self, messages: list[dict[str, str]]) -> str:
        options = {"tokenize": False, "add_generation_prompt": self.kind != "reward"}
        try:
            return str(self.tokenizer.apply_chat_template(messages, **options))
        except Exception as error:  # templates raise anything
            if messages[0]["role"] != "system":
                raise EndpointError(_explain(self.endpoint, f"{type(error).__name__}: {error}")) from error
        # Some templates know no system message.
        merged = {"role": "user", "content": f"{messages[0]['content']}\n\n{messages[1]['content']}"}
        return self._fill_chat([merged, *messages[2:]])

    def _encode_labels(self, labels: Sequence[str]) -> LabelPaths:
        """Return the token sequences of the labels, with and without a space before them."""
        ids: list[tuple[int, ...]] = []
        owners: list[str] = []
        for label in labels:
            for text in (label, f" {label}"):
                path = tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])
                if not path or self.tokenizer.unk_token_id in path:
                    text = _("its tokenizer cannot write the answer “%(label)s”; use the method json")
                    raise EndpointError(_explain(self.endpoint, text % {"label": label}))
                if path not in ids:
                    ids.append(path)
                    owners.append(label)
        return LabelPaths(tuple(labels), tuple(ids), tuple(owners))

    # ---- forward functions ------------------------------------------------------------------------------------

    def _reward(self, batch: Batch) -> torch.Tensor:
        """(rows, 1) the rewards."""
        inputs = batch.inputs
        if self._is_pad_free:
            # Causal models read the last token that is not padding: no text may end in the number of the padding.
            ids = batch.input_ids
            ends = {int(row[int(n) - 1]) for row, n in zip(ids, batch.lengths, strict=True)}
            pad = next(n for n in range(len(ends) + 1) if n not in ends)
            self.model.config.pad_token_id = pad
            inputs = {**inputs, "input_ids": ids.masked_fill(batch.attention_mask == 0, pad)}
        result: torch.Tensor = self.model(**inputs).logits.float()
        return result

    def _weigh(self, batch: Batch, paths: LabelPaths) -> torch.Tensor:
        """(rows, paths) the log-probability of each path of tokens after the prompt."""
        import torch

        after = self._read_causal(batch, paths) if self.kind == "causal" else self._read_seq2seq(batch, paths)
        columns = [
            torch.stack([after[path[:k]][:, token] for k, token in enumerate(path)]).sum(0) for path in paths.ids
        ]
        return torch.stack(columns, dim=1)

    def _read_causal(self, batch: Batch, paths: LabelPaths) -> dict[Tokens, torch.Tensor]:
        """Return (rows, vocabulary) log-probabilities of the next token after each beginning of a path."""
        import torch

        ids, mask = align_left(batch)
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        deeper = [beginning for beginning in paths.beginnings if beginning]
        given = {"logits_to_keep": 1} if "logits_to_keep" in self._arguments else {}
        output = self._call(ids, mask, positions, use_cache=bool(deeper), **given)
        kept = getattr(output, "past_key_values", None)
        if deeper and kept is None:
            text = _("it has no key-value cache, which answers of several tokens need; use the method json")
            raise EndpointError(_explain(self.endpoint, text))
        result: dict[Tokens, torch.Tensor] = {(): _log_softmax(output.logits[:, -1])}
        for beginning in deeper:
            tail = torch.tensor(beginning, device=ids.device).expand(len(ids), -1)
            steps = torch.arange(1, len(beginning) + 1, device=ids.device)
            # A copy, because reading on changes the keys and values of the prompt.
            cache = copy.deepcopy(kept)
            more = self._call(
                tail, torch.cat([mask, torch.ones_like(tail)], 1), positions[:, -1:] + steps, use_cache=True,
                past_key_values=cache,
            )  # fmt: skip
            result[beginning] = _log_softmax(more.logits[:, -1])
        return result

    def _call(self, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, **rest: Any) -> Any:
        given = {"position_ids": positions} if "position_ids" in self._arguments else {}
        return self.model(input_ids=ids, attention_mask=mask, **given, **rest)

    def _read_seq2seq(self, batch: Batch, paths: LabelPaths) -> dict[Tokens, torch.Tensor]:
        """Return the same of a decoder; its input begins with the start token, and the forced first token if any."""
        import torch

        options = self.model.generation_config
        start = [options.decoder_start_token_id, options.forced_bos_token_id]
        lead = [int(token) for token in start if token is not None]
        encoded = self.model.get_encoder()(input_ids=batch.input_ids, attention_mask=batch.attention_mask)
        result = {}
        for beginning in paths.beginnings:
            tokens = torch.tensor([*lead, *beginning], device=batch.input_ids.device)
            output = self.model(
                encoder_outputs=encoded, attention_mask=batch.attention_mask,
                decoder_input_ids=tokens.expand(len(batch.input_ids), -1), use_cache=False,
            )  # fmt: skip
            result[beginning] = _log_softmax(output.logits[:, -1])
        return result

    def _generate(self, batch: Batch, request: Request) -> torch.Tensor:
        """(rows, tokens) generated token numbers, until the end of the JSON object."""
        import torch

        is_causal = self.kind == "causal"
        ids, mask = align_left(batch) if is_causal else (batch.input_ids, batch.attention_mask)
        sampling: dict[str, Any] = {"do_sample": False, "temperature": None, "top_k": None, "top_p": None}
        if request.temperature > 0:
            sampling = {"do_sample": True, "temperature": request.temperature, "top_k": 0, "top_p": 1.0}
        torch.manual_seed(int(request.digest[:8], 16) + request.repeat)
        output: torch.Tensor = self.model.generate(
            input_ids=ids, attention_mask=mask, max_new_tokens=request.max_tokens, pad_token_id=self.engine.pad_id,
            num_beams=1, stop_strings=["}"], tokenizer=self.tokenizer, **sampling,
        )  # fmt: skip
        return output[:, ids.shape[1] :] if is_causal else output[:, 1:]

    def _decode(self, values: list[float], most: int) -> Answer:
        ids = [int(value) for value in values]
        while ids and ids[-1] == self.engine.pad_id:
            ids.pop()
        text = self.tokenizer.decode(ids, skip_special_tokens=True)
        finish = "length" if len(ids) >= most else "stop"
        return Answer(text.replace("\0", "\ufffd"), "", finish, completion_tokens=len(ids))


@dataclass(frozen=True)
class LabelPaths:
    """Token sequences (`ids`) that write a label; `owners` has the label of each. Labels may have several."""

    labels: tuple[str, ...]
    ids: tuple[Tokens, ...]
    owners: tuple[str, ...]

    @cached_property
    def beginnings(self) -> list[Tokens]:
        """The beginnings of paths after which another token is read, the empty one first."""
        return sorted({path[:k] for path in self.ids for k in range(len(path))}, key=lambda one: (len(one), one))

    def make_answer(self, values: list[float]) -> Answer:
        """Return the answer with the log-probability of each label as the whole answer. `values` (paths,) are those of
        the paths; what continues as another label, such as 1 as 10, is not counted as the shorter one."""
        weights = {path: math.exp(value) for path, value in zip(self.ids, values, strict=True)}
        whole = dict(weights)
        for path, weight in weights.items():
            parent = next((path[:k] for k in range(len(path) - 1, 0, -1) if path[:k] in weights), None)
            if parent is not None:
                whole[parent] -= weight
        sums = dict.fromkeys(self.labels, 0.0)
        for path, owner in zip(self.ids, self.owners, strict=True):
            sums[owner] += max(whole[path], 0.0)
        top = {label: round(math.log(p), 6) if p > 0 else LEAST_LOGPROB for label, p in sums.items()}
        best = max(top, key=lambda label: top[label])
        return Answer(best, "", "stop", tokens=((best, top),), completion_tokens=1)


def align_left(batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
    """Return token numbers and mask of a batch with the padding on the left, so that all prompts end together."""
    import torch

    longest = batch.input_ids.shape[1]
    places = torch.arange(longest, device=batch.input_ids.device)[None, :]
    shift = longest - batch.attention_mask.sum(1, keepdim=True)
    order = (places - shift) % longest
    return batch.input_ids.gather(1, order), batch.attention_mask.gather(1, order)


def _log_softmax(logits: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.log_softmax(logits.double(), dim=-1)


def _settled(request: Request, answer: Answer | None, reason: str) -> Outcome:
    return Outcome(request, answer, reason, settle=lambda: None)
