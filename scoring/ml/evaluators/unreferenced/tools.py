"""Models that make texts for false replies: a generator of replies, and a pair of translators or a model that
paraphrases, from local folders.

Both are plain functions of texts, so that users of the library may pass their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch

from scoring.ml.encoders.loading import AutoKind, check_model, foreign_files, read_model
from scoring.ml.encoders.tokenizing import well_formed
from scoring.ml.engine import resolve_device
from scoring.ml.errors import EncoderError
from scoring.ml.signature import text_hash
from scoring.ml.training.job import FitJob, TrainingProgress

#: Texts in, as many texts out. A generator gets contexts, turns joined by line breaks.
TextMaker: TypeAlias = Callable[[list[str]], list[str]]
#: Texts that a maker gets at a time; after each lot, results are stored and progress is reported.
LOT = 8
_OTHER = "copy the folder again, or take another model"


@dataclass(frozen=True)
class Tools:
    """Functions that make replies and paraphrases; None for none."""

    generate: TextMaker | None = None
    back_translate: TextMaker | None = None


@dataclass(frozen=True)
class ToolJob(FitJob):
    """A training whose tools are functions instead of model folders."""

    tools: Tools | None = None


class LocalTextModel:
    """A sequence-to-sequence or causal language model in a folder; gives the most probable text by beam search.

    Of a causal model's text the first line is used. Only safetensors; code from the folder is never run. Raises
    `EncoderError` if the folder has no such model.
    """

    def __init__(self, folder: str | Path, *, device: str = "auto", beams: int = 1, max_new_tokens: int = 40) -> None:
        self.folder = Path(folder)
        if not (self.folder / "config.json").is_file():
            raise EncoderError(str(folder), "is no folder of a transformers model: it holds no config.json")
        self.device = resolve_device(device)
        self.beams, self.max_new_tokens = beams, max_new_tokens
        self._loaded: tuple[Any, Any, bool] | None = None

    def __call__(self, texts: list[str]) -> list[str]:
        """One text for each; a blank one for a blank text."""
        places = [place for place, text in enumerate(texts) if text.strip()]
        result = [""] * len(texts)
        if places:
            for place, text in zip(places, self._make([texts[place] for place in places]), strict=True):
                result[place] = text
        return result

    def _make(self, texts: list[str]) -> list[str]:
        tokenizer, model, causal = self._load()
        longest = min(int(getattr(model.config, "max_position_embeddings", 0) or 512), 512)
        # Prompt and output of a causal model share its positions.
        new = min(self.max_new_tokens, longest // 2)
        room = longest - new if causal else longest
        lead = "\n" if causal else ""
        inputs = tokenizer(
            [well_formed(text) + lead for text in texts],
            return_tensors="pt",
            padding=True,
            truncation=True,
            max_length=room,
        ).to(self.device)
        inputs.pop("token_type_ids", None)
        with torch.inference_mode():
            made = model.generate(
                **inputs,
                max_new_tokens=new,
                do_sample=False,
                num_beams=self.beams,
                pad_token_id=tokenizer.pad_token_id,
            )
        if causal:
            made = made[:, inputs["input_ids"].shape[1] :]
        result = [str(text).strip() for text in tokenizer.batch_decode(made, skip_special_tokens=True)]
        return [text.splitlines()[0].strip() if causal and text else text for text in result]

    def check(self) -> None:
        """Raises the `EncoderError` that the first call would raise; weights are not read."""
        kind = self._kind()
        self._tokenizer()
        check_model(str(self.folder), self.folder, kind)

    def _load(self) -> tuple[Any, Any, bool]:
        if self._loaded is None:
            self._loaded = self._read()
        return self._loaded

    def _read(self) -> tuple[Any, Any, bool]:
        kind, tokenizer = self._kind(), self._tokenizer()
        causal = kind == "AutoModelForCausalLM"
        model: Any = read_model(str(self.folder), self.folder, kind)
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
        tokenizer.padding_side = tokenizer.truncation_side = "left" if causal else "right"
        return tokenizer, model.to(self.device), causal

    def _kind(self) -> AutoKind:
        from transformers import AutoConfig

        with foreign_files(str(self.folder), "holds no language model that can be read", _OTHER):
            config = AutoConfig.from_pretrained(str(self.folder), local_files_only=True, trust_remote_code=False)
        return "AutoModelForSeq2SeqLM" if config.is_encoder_decoder else "AutoModelForCausalLM"

    def _tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        with foreign_files(str(self.folder), "holds no tokenizer that can be read", _OTHER):
            return AutoTokenizer.from_pretrained(str(self.folder), local_files_only=True, trust_remote_code=False)


def get_tools(job: FitJob) -> Tools:
    """The tools of a job: its own functions, or the models in its folders."""
    if isinstance(job, ToolJob) and job.tools is not None:
        return job.tools
    device = job.text("train_device")
    generator, there, back = (job.options[name] for name in ("generator", "translator", "back_translator"))
    generate = LocalTextModel(str(generator), device=device) if generator else None
    if job.options["paraphraser"]:
        return Tools(generate, LocalTextModel(str(job.options["paraphraser"]), device=device, beams=5))
    if not there or not back:
        return Tools(generate)
    forth, home = (LocalTextModel(str(folder), device=device, beams=5) for folder in (there, back))
    return Tools(generate, lambda texts: home(forth(texts)))


def make_texts(maker: TextMaker, texts: Sequence[str], job: FitJob, purpose: str) -> list[str]:
    """Return the text that `maker` makes of each of the `texts`. They are stored in the folder of the `job` lot by lot,
    so that a resumed training continues there; `purpose` names the phase and the file."""
    folder = job.folder / "made"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{purpose}-{text_hash(texts)}.jsonl"
    result = _whole_lines(path)
    with path.open("a", encoding="utf-8") as file:
        for start in range(len(result), len(texts), LOT):
            lot = list(texts[start : start + LOT])
            made = maker(lot)
            if len(made) != len(lot):
                raise ValueError(f"{purpose}: {len(made)} texts came back for {len(lot)}; give one for each")
            file.write("".join(json.dumps(text, ensure_ascii=False) + "\n" for text in made))
            file.flush()
            result += made
            job.report(TrainingProgress(len(result), len(texts), phase=purpose))
    return result


def _whole_lines(path: Path) -> list[str]:
    """The stored texts; an incomplete last line is removed from the file."""
    if not path.is_file():
        return []
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end != len(content):
        path.write_bytes(content[:end])
    # `splitlines` would also split at U+2028, which JSON leaves unescaped.
    return [str(json.loads(line)) for line in content[:end].decode("utf-8").split("\n") if line]
