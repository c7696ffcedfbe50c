"""Runs an encoder over a batch for inference, on a CPU without computing padding.

For BERT, RoBERTa and DistilBERT on a CPU the tokens of a batch lie end to end: products with weights see no padding,
attention runs over groups of equal length without a mask, and where only the first token of each input is asked for,
the last layer computes only that, without keys and values of the other tokens. Weights are read from the model itself,
so nothing is copied. Equal to the model's own forward within 1e-5. Any other model, device or a model in training runs
its own forward.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from scoring.ml.encodings import Ints
from scoring.ml.engine import Batch
from scoring.ml.layers.pooling import Pooling

if TYPE_CHECKING:
    from torch import Tensor, nn

_BERT = {"BertModel", "RobertaModel", "XLMRobertaModel", "CamembertModel"}
_DISTILBERT = {"DistilBertModel"}


class _Layer(NamedTuple):
    """The parts of a layer with attention and feed-forward network, each followed by residual and norm."""

    query: nn.Module
    key: nn.Module
    value: nn.Module
    out: nn.Module
    attention_norm: nn.Module
    up: nn.Module
    activation: Callable[[Tensor], Tensor]
    down: nn.Module
    output_norm: nn.Module
    heads: int


class _Parts(NamedTuple):
    """An encoder taken apart; `first_position` is the number of an input's first token."""

    words: nn.Embedding
    positions: nn.Embedding
    types: nn.Embedding | None
    norm: nn.Module
    layers: list[_Layer]
    first_position: int


class _Group(NamedTuple):
    """Inputs of equal length that lie side by side: their first token and first input, how many, how long."""

    start: int
    row: int
    rows: int
    length: int

    @property
    def tokens(self) -> slice:
        return slice(self.start, self.start + self.rows * self.length)

    @property
    def inputs(self) -> slice:
        return slice(self.row, self.row + self.rows)


def token_vectors(model: nn.Module, batch: Batch, *, layer: int | None = None) -> Tensor:
    """Return (tokens, width) the last hidden states of all tokens of a `batch` without padding, input after input.

    `layer` 0 is the embedding layer of `model`; other layers are chosen when the model is loaded.
    """
    parts = _parts(model, batch)
    if parts is None:
        output = model(**batch.inputs, output_hidden_states=layer == 0)
        hidden: Tensor = output.hidden_states[0] if layer == 0 else output.last_hidden_state
        return hidden[batch.attention_mask.bool()]
    hidden = _embed(parts, batch)
    groups = _groups(batch.lengths)
    for each in parts.layers if layer != 0 else ():
        hidden = _feed_forward(each, _attend(each, hidden, groups))
    return hidden


def first_vectors(model: nn.Module, batch: Batch) -> Tensor:
    """Return (rows, width) the last hidden state of `model` at the first token of each input of a `batch`; that is the
    class token of most encoders."""
    parts = _parts(model, batch)
    if parts is None:
        output: Tensor = model(**batch.inputs).last_hidden_state
        return output[:, 0]
    hidden = _embed(parts, batch)
    groups = _groups(batch.lengths)
    *before, last = parts.layers
    for each in before:
        hidden = _feed_forward(each, _attend(each, hidden, groups))
    return _feed_forward(last, _attend_from_firsts(last, hidden, groups))


def pooled_vectors(model: nn.Module, batch: Batch, how: Pooling) -> Tensor:
    """Return (rows, width) one vector for each input of a `batch`, without gradients.

    It equals `layers.pooling.pool` of the last hidden states of `model`; `how` is cls, mean or max.
    """
    import torch

    if how == "cls":
        return first_vectors(model, batch)
    hidden = token_vectors(model, batch)
    if how == "max":
        return torch.stack([part.amax(dim=0) for part in hidden.split(batch.lengths.tolist())])
    lengths = torch.from_numpy(batch.lengths).to(hidden.device)
    owner = torch.repeat_interleave(torch.arange(len(lengths), device=hidden.device), lengths)
    sums = torch.zeros((len(lengths), hidden.shape[1]), dtype=torch.float32, device=hidden.device)
    return sums.index_add_(0, owner, hidden.float()) / lengths[:, None]


def sequence_logits(model: nn.Module, batch: Batch) -> Tensor:
    """Return (rows, labels) the output of a transformers `...ForSequenceClassification` `model` for each input of a
    `batch`."""
    own: Any = model
    kind = type(model).__name__.removesuffix("ForSequenceClassification")
    encoder = getattr(own, own.base_model_prefix, None)
    if encoder is None or kind not in {"Bert", "Roberta", "XLMRoberta", "Camembert", "DistilBert"}:
        return cast("Tensor", model(**batch.inputs).logits)
    first = first_vectors(encoder, batch)
    if kind == "DistilBert":
        first = own.dropout(own.pre_classifier(first).relu())
    elif kind == "Bert":
        first = own.dropout(encoder.pooler(first.unsqueeze(1)))
    else:
        # The head of the RoBERTa family takes the first token itself.
        first = first.unsqueeze(1)
    logits = own.classifier(first)
    return logits


def _parts(model: nn.Module, batch: Batch) -> _Parts | None:
    """The encoder's parts; None if its own forward must run."""
    import torch

    kind = type(model).__name__
    if kind not in _BERT | _DISTILBERT or not type(model).__module__.startswith("transformers."):
        return None
    if batch.input_ids.device.type != "cpu" or model.training or torch.is_grad_enabled():
        return None
    config: Any = model.config
    if getattr(config, "is_decoder", False) or getattr(config, "position_embedding_type", "absolute") != "absolute":
        return None
    own: Any = model
    embeddings = own.embeddings
    padding = embeddings.position_embeddings.padding_idx
    first = 0 if kind in _DISTILBERT or kind == "BertModel" else padding + 1
    # RoBERTa gives padding inside an input no position of its own.
    if first and bool((batch.input_ids.eq(padding) & batch.attention_mask.bool()).any()):
        return None
    layers = (
        [_distilbert_layer(x) for x in own.transformer.layer]
        if kind in _DISTILBERT
        else [_bert_layer(x) for x in own.encoder.layer]
    )
    types = None if kind in _DISTILBERT else embeddings.token_type_embeddings
    return _Parts(
        embeddings.word_embeddings, embeddings.position_embeddings, types, embeddings.LayerNorm, layers, first
    )


def _bert_layer(layer: Any) -> _Layer:
    attention = layer.attention
    return _Layer(
        attention.self.query,
        attention.self.key,
        attention.self.value,
        attention.output.dense,
        attention.output.LayerNorm,
        layer.intermediate.dense,
        _in_place(layer.intermediate.intermediate_act_fn),
        layer.output.dense,
        layer.output.LayerNorm,
        attention.self.num_attention_heads,
    )


def _distilbert_layer(layer: Any) -> _Layer:
    attention = layer.attention
    return _Layer(
        attention.q_lin,
        attention.k_lin,
        attention.v_lin,
        attention.out_lin,
        layer.sa_layer_norm,
        layer.ffn.lin1,
        _in_place(layer.ffn.activation),
        layer.ffn.lin2,
        layer.output_layer_norm,
        attention.n_heads,
    )


def _in_place(activation: Any) -> Callable[[Tensor], Tensor]:
    """The exact GELU without new memory; any other activation unchanged."""
    import torch

    if type(activation).__name__ == "GELUActivation" and getattr(activation, "act", None) is torch.nn.functional.gelu:
        return cast("Callable[[Tensor], Tensor]", torch.ops.aten.gelu_.default)
    return cast("Callable[[Tensor], Tensor]", activation)


def _groups(lengths: Ints) -> list[_Group]:
    """Neighbours of equal length; the engine's batches are sorted, so there are few."""
    cuts = np.flatnonzero(np.diff(lengths)) + 1
    rows = np.concatenate([[0], cuts, [len(lengths)]])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return [_Group(int(starts[row]), int(row), int(end - row), int(lengths[row])) for row, end in pairwise(rows)]


def _embed(parts: _Parts, batch: Batch) -> Tensor:
    """(tokens, width) the input of the first layer."""
    import torch

    mask = batch.attention_mask.bool()
    whole = bool(mask.all())
    ids = batch.input_ids.flatten() if whole else batch.input_ids[mask]
    starts = np.cumsum(batch.lengths) - batch.lengths
    positions = np.arange(len(ids)) - np.repeat(starts, batch.lengths) + parts.first_position
    hidden = parts.words(ids)
    if parts.types is not None:
        if batch.token_type_ids is None:
            hidden += parts.types.weight[0]
        else:
            kinds = batch.token_type_ids
            hidden += parts.types(kinds.flatten() if whole else kinds[mask])
    hidden += parts.positions(torch.from_numpy(positions))
    return cast("Tensor", parts.norm(hidden))


def _attend(layer: _Layer, hidden: Tensor, groups: list[_Group], *, firsts: Tensor | None = None) -> Tensor:
    """Attention of every token, or only of each input's first, with residual and norm."""
    import torch

    width = hidden.shape[1]
    asking = hidden if firsts is None else hidden[firsts]
    query, key, value = layer.query(asking), layer.key(hidden), layer.value(hidden)
    values = torch.empty_like(query)
    for group in groups:
        tokens = group.tokens
        asked = tokens if firsts is None else group.inputs
        shape = (group.rows, -1, layer.heads, width // layer.heads)
        q, k, v = (part.view(shape).transpose(1, 2) for part in (query[asked], key[tokens], value[tokens]))
        context = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        values[asked] = context.transpose(1, 2).reshape(-1, width)
    return _attended(layer, values, asking)


def _attend_from_firsts(layer: _Layer, hidden: Tensor, groups: list[_Group]) -> Tensor:
    """Attention of each input's first token alone, with residual and norm.

    Of token j with the vector h_j the score is q (W_k h_j + b_k) = (W_k' q) h_j + q b_k, whose last summand is the same
    for all j and so without effect; and the weights p_j, which sum to 1, give sum_j p_j (W_v h_j + b_v) =
    W_v sum_j p_j h_j + b_v. So the matrices of keys and values are applied once an input, not once a token.
    """
    import torch

    firsts = _firsts(groups)
    if not _is_plain(layer, hidden):
        return _attend(layer, hidden, groups, firsts=firsts)
    asking, own = hidden[firsts], cast(Any, layer)
    rows, width = asking.shape
    size = width // layer.heads
    key, value = (part.weight.view(layer.heads, size, width) for part in (own.key, own.value))
    query = layer.query(asking).view(rows, layer.heads, size).transpose(0, 1) * size**-0.5
    asked = torch.matmul(query, key).transpose(0, 1).contiguous()
    values = torch.empty_like(asked)
    for group in groups:
        tokens = hidden[group.tokens].view(group.rows, group.length, width)
        weights = torch.matmul(asked[group.inputs], tokens.transpose(1, 2)).softmax(dim=-1)
        values[group.inputs] = torch.matmul(weights, tokens)
    context = torch.matmul(values.transpose(0, 1), value.transpose(1, 2)).transpose(0, 1).reshape(rows, width)
    return _attended(layer, context if own.value.bias is None else context + own.value.bias, asking)


def _firsts(groups: list[_Group]) -> Tensor:
    """The first token of every input."""
    import torch

    return torch.cat([torch.arange(g.tokens.start, g.tokens.stop, g.length) for g in groups])


def _is_plain(layer: _Layer, hidden: Tensor) -> bool:
    """Whether keys and values are plain products in full precision; only then may their order be exchanged."""
    import torch

    parts = (layer.key, layer.value)
    return hidden.dtype == torch.float32 and all(type(part) is torch.nn.Linear for part in parts)


def _attended(layer: _Layer, context: Tensor, hidden: Tensor) -> Tensor:
    """The output of the attention, with residual and norm."""
    attended = layer.out(context)
    attended += hidden
    return cast("Tensor", layer.attention_norm(attended))


def _feed_forward(layer: _Layer, hidden: Tensor) -> Tensor:
    raised = layer.down(layer.activation(layer.up(hidden)))
    raised += hidden
    return cast("Tensor", layer.output_norm(raised))
