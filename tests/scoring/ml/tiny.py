"""Tiny randomly initialised encoders of every supported family, saved like real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

WORDS = ["cat", "dog", "sat", "on", "mat", "tea", "i", "you", "like", "no", "yes", "the", "ran"]
PIECES = ["##" + letter for letter in "abcdefghijklmnopqrstuvwxyz"]
LETTERS = list("abcdefghijklmnopqrstuvwxyz0123456789.,!?'-[]")
CHINESE = list("你好我是的不了在有他这中大来上个国猫狗喝茶很喜欢天气今真。，！？")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
FAMILIES = ("bert", "roberta", "distilbert", "deberta-v2", "modernbert", "chinese-bert")
#: Families whose pair inputs have token types.
TYPED = ("bert", "chinese-bert")


def tiny_encoder(
    family: str, folder: Path, *, layers: int = 2, max_length: int = 64, seed: int = 7, dropout: float = 0.0
) -> str:
    """Saves a random encoder (width 32, 4 heads) with a tokenizer of its family's own kind; returns its folder.

    `max_length` counts tokens including special ones; RoBERTa's position numbers start after its padding.
    """
    folder.mkdir(parents=True, exist_ok=True)
    size = save_tokenizer(family, folder, max_length)
    save_model(family, folder, size, layers=layers, positions=max_length, seed=seed, dropout=dropout)
    return str(folder)


def copy_as_another_kind(encoder: str, folder: Path) -> str:
    """The same encoder, declared as a kind that no artefact may contain."""
    for path in Path(encoder).iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "big_bird"}), encoding="utf-8")
    return str(folder)


def save_tokenizer(family: str, folder: Path, max_length: int) -> int:
    """Writes the tokenizer's files; returns the size of its vocabulary."""
    tokenizer = _tokenizer(family, max_length)
    tokenizer.save_pretrained(folder)
    return len(tokenizer)


def save_model(
    family: str, folder: Path, size: int, *, layers: int, positions: int, seed: int = 7, dropout: float = 0.0
) -> None:
    """Writes config.json and model.safetensors; weights are larger than fresh ones, so that mistakes are visible."""
    import torch
    import transformers as t

    sizes = {"hidden_size": 32, "num_hidden_layers": layers, "num_attention_heads": 4, "intermediate_size": 48}
    common = {"vocab_size": size, "max_position_embeddings": positions, "pad_token_id": 0}
    drop = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    config = {
        "bert": lambda: t.BertConfig(**sizes, **common, **drop),
        "chinese-bert": lambda: t.BertConfig(**sizes, **common, **drop),
        "roberta": lambda: t.RobertaConfig(
            **sizes,
            **drop,
            vocab_size=size,
            max_position_embeddings=positions + 2,
            pad_token_id=1,
            bos_token_id=0,
            eos_token_id=2,
            type_vocab_size=1,
        ),
        "distilbert": lambda: t.DistilBertConfig(
            dim=32, n_layers=layers, n_heads=4, hidden_dim=48, dropout=dropout, attention_dropout=dropout, **common
        ),
        "deberta-v2": lambda: t.DebertaV2Config(
            **sizes,
            **common,
            **drop,
            relative_attention=True,
            pos_att_type=["c2p", "p2c"],
            position_buckets=8,
            type_vocab_size=0,
        ),
        "modernbert": lambda: t.ModernBertConfig(
            **sizes,
            **common,
            local_attention=8,
            embedding_dropout=dropout,
            mlp_dropout=dropout,
            attention_dropout=dropout,
            cls_token_id=2,
            sep_token_id=3,
            bos_token_id=2,
            eos_token_id=3,
        ),
    }[family]()
    torch.manual_seed(seed)
    model = t.AutoModel.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.mul_(8 if "embed" in name else 4)
    model.save_pretrained(folder)


def _tokenizer(family: str, max_length: int) -> Any:
    import transformers as t

    if family in {"bert", "distilbert", "chinese-bert"}:
        words = CHINESE if family == "chinese-bert" else WORDS
        tokens = list(dict.fromkeys([*SPECIAL, *words, *LETTERS, *PIECES]))
        kind = t.DistilBertTokenizer if family == "distilbert" else t.BertTokenizer
        return kind(vocab={token: number for number, token in enumerate(tokens)}, model_max_length=max_length)
    if family == "roberta":
        symbols = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *_byte_symbols()]
        vocabulary = {token: number for number, token in enumerate(symbols)}
        merges = _merges(vocabulary)
        return t.RobertaTokenizer(vocab=vocabulary, merges=merges, model_max_length=max_length)
    if family == "deberta-v2":
        pieces = [(token, 0.0) for token in SPECIAL]
        pieces += [("\u2581" + word, -2.0) for word in WORDS]
        pieces += [(letter, -5.0) for letter in ["\u2581", *LETTERS]]
        # The value in this family's tokenizers when no limit was set.
        return t.DebertaV2Tokenizer(vocab=pieces, unk_id=1, model_max_length=int(1e30))
    return _modernbert_tokenizer(max_length)


def _modernbert_tokenizer(max_length: int) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {token: number for number, token in enumerate([*SPECIAL, *_byte_symbols()])}
    tokenizer = Tokenizer(models.BPE(vocabulary, _merges(vocabulary), unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    names = {name: f"[{name[:-6].upper()}]" for name in ("pad_token", "unk_token", "cls_token", "sep_token")}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        mask_token="[MASK]",
        model_max_length=max_length,
        model_input_names=["input_ids", "attention_mask"],
        **names,
    )


def _byte_symbols() -> list[str]:
    from tokenizers import pre_tokenizers

    return sorted(pre_tokenizers.ByteLevel.alphabet())


def _merges(vocabulary: dict[str, int]) -> list[tuple[str, str]]:
    """Merges that build the words letter by letter, with and without a preceding space; adds the pieces."""
    merges: dict[tuple[str, str], None] = {}
    for word in WORDS:
        for symbols in (word, "\u0120" + word):
            whole = symbols[0]
            for symbol in symbols[1:]:
                merges[whole, symbol] = None
                whole += symbol
                vocabulary.setdefault(whole, len(vocabulary))
    return list(merges)
