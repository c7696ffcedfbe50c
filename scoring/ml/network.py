"""The bases of the networks that are trained here: a `PreTrainedModel` around an encoder, without one, or around one
for each task.

Imports torch; only evaluators' implementations may import this module.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, ClassVar, Self, cast

import torch
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel

from scoring.ml.base import ARTIFACT
from scoring.ml.encoders.loading import Attention, load_model, without_report
from scoring.ml.encoders.source import EncoderSource
from scoring.ml.errors import ArtefactError, EncoderError

#: Architectures that an artefact's encoder may have; their code is part of transformers.
ARCHITECTURES = (
    "bert",
    "roberta",
    "xlm-roberta",
    "distilbert",
    "deberta",
    "deberta-v2",
    "modernbert",
    "electra",
    "mpnet",
    "albert",
    "camembert",
)


class NetworkConfig(PreTrainedConfig):
    """`encoder` is the config of the encoder inside, None if the network works on cached vectors; `network` holds the
    sizes and switches of the heads."""

    model_type = "evalapp"
    encoder: dict[str, Any] | None = None
    network: dict[str, Any] | None = None
    attention: str = "sdpa"


class Network(PreTrainedModel):
    """Subclasses build their heads in `build` and return at least `{"loss": ...}` from `forward` in training."""

    config_class = NetworkConfig
    base_model_prefix = "encoder"
    supports_gradient_checkpointing = True

    def __init__(self, config: NetworkConfig, encoder: torch.nn.Module | None = None) -> None:
        super().__init__(config)
        self.encoder: torch.nn.Module | None = None
        if config.encoder is not None:
            self.encoder = encoder if encoder is not None else _bare_encoder(config.encoder, config.attention)
        self.build(config.network or {}, width=_width(config.encoder))
        self.post_init()
        #: The loss of the last step, and the sum since the curve was last asked.
        self.last_loss: float | None = None
        self._loss_sum, self._loss_n = 0.0, 0
        #: Whether the head comes from a trained evaluator.
        self.has_trained_head = False
        #: Averages a value of this batch over all processes that share a training.
        self.over_all: Callable[[float], float] = float

    @classmethod
    def from_source(
        cls, source: EncoderSource | None, network: dict[str, Any], *, attention: Attention | None = None
    ) -> Self:
        """A fresh network around the encoder of a source with its weights, or without encoder.

        `network` are the sizes and switches `build` gets; JSON values only. Set torch's seed before: heads are
        initialised at random. Raises `EncoderError` for a kind of encoder that could be trained and saved but not be
        loaded again.
        """
        if source is None:
            return cls(NetworkConfig(encoder=None, network=network))
        check_architecture(source)
        chosen: Attention = attention or ("eager" if source.attention == "eager" else "sdpa")
        config = NetworkConfig(encoder=dict(source.config), network=network, attention=chosen)
        # The folder of a trained evaluator has weights of its head as well, which are no fault.
        with without_report() if (source.folder / ARTIFACT).is_file() else nullcontext():
            encoder = load_model(source, attention=chosen)
        return cls(config, encoder)

    def build(self, network: dict[str, Any], width: int) -> None:
        """Make the heads; `width` is the encoder's hidden size, 0 without an encoder."""
        raise NotImplementedError

    def _init_weights(self, module: torch.nn.Module) -> None:
        """Heads are initialised where they are built; the encoder brings its weights."""

    def note_loss(self, loss: torch.Tensor) -> torch.Tensor:
        """Remember a step's loss for the curve; call it in `forward` on the loss that is returned."""
        if self.training:
            self.last_loss = self.over_all(float(loss.detach()))
            self._loss_sum += self.last_loss
            self._loss_n += 1
        return loss

    def counted(self, inputs: Mapping[str, torch.Tensor]) -> float:
        """The number of terms whose mean is the loss of this batch: its rows. Parts of a batch are weighted by it."""
        return float(len(next(iter(inputs.values()))))

    def mean_loss(self) -> float | None:
        """The mean loss of the steps since the last call, None without any."""
        mean = self._loss_sum / self._loss_n if self._loss_n else None
        self._loss_sum, self._loss_n = 0.0, 0
        return mean

    @property
    def open_losses(self) -> tuple[float, int]:
        """Sum and number of the losses since the last `mean_loss`, for a training that continues in another process."""
        return self._loss_sum, self._loss_n

    @open_losses.setter
    def open_losses(self, losses: tuple[float, int]) -> None:
        self._loss_sum, self._loss_n = losses

    @property
    def width(self) -> int:
        """The encoder's hidden size."""
        return _width(self.config.encoder)

    def hidden(
        self,
        input_ids: torch.Tensor | None,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
        **more: torch.Tensor,
    ) -> torch.Tensor:
        """(rows, tokens, width) last hidden states of the encoder."""
        assert self.encoder is not None
        given: dict[str, torch.Tensor] = {"attention_mask": attention_mask, **more}
        if input_ids is not None:
            given["input_ids"] = input_ids
        if token_type_ids is not None:
            given["token_type_ids"] = token_type_ids
        return cast("torch.Tensor", self.encoder(**given).last_hidden_state)


class TowerNetwork(Network):
    """The first tower is `encoder`, further ones are in `others`. Subclasses name their lists of heads in
    `heads_by_tower`; each list has a head per tower, or is empty."""

    heads_by_tower: ClassVar[tuple[str, ...]]
    others: torch.nn.ModuleList

    def add_towers(self, n: int) -> None:
        """Copy the encoder until there are `n` towers."""
        assert self.encoder is not None
        encoder = self.encoder
        self.others = torch.nn.ModuleList(copy.deepcopy(encoder) for _ in range(n - 1))

    def tower(self, number: int) -> torch.nn.Module:
        """The encoder of the tower `number`."""
        encoder = self.encoder if number == 0 else self.others[number - 1]
        assert encoder is not None
        return encoder

    def copy_tower(self, network: TowerNetwork, number: int) -> None:
        """Copy the weights of a `network` with one tower into the tower `number`."""
        self.tower(number).load_state_dict(network.tower(0).state_dict())
        for name in self.heads_by_tower:
            if len(getattr(self, name)):
                getattr(self, name)[number].load_state_dict(getattr(network, name)[0].state_dict())


def check_architecture(source: EncoderSource) -> None:
    """Raise `EncoderError` if a saved evaluator cannot contain the encoder of `source`, because of its architecture."""
    if source.model_type not in ARCHITECTURES:
        raise EncoderError(
            source.name,
            f"is of the kind {source.model_type!r}, which no trained evaluator may bring along; take one of "
            f"{', '.join(ARCHITECTURES)}",
        )


def _bare_encoder(config: dict[str, Any], attention: str) -> torch.nn.Module:
    kind = str(config.get("model_type", ""))
    if kind not in ARCHITECTURES:
        text = f"its encoder is of the kind {kind!r}; allowed are {', '.join(ARCHITECTURES)}"
        raise ArtefactError("config.json", text)
    plain = {key: value for key, value in config.items() if key not in ("model_type", "auto_map", "architectures")}
    model: torch.nn.Module = AutoModel.from_config(
        AutoConfig.for_model(kind, **plain), attn_implementation=attention, trust_remote_code=False
    )
    return model


def _width(config: dict[str, Any] | None) -> int:
    if config is None:
        return 0
    return int(config.get("hidden_size") or config.get("dim") or config.get("d_model") or 0)
