"""Small random models that judge, saved to folders like real ones: causal, sequence-to-sequence and reward models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

#: An own end-of-turn token next to the usual ones.
END, OWN_END = "<|im_end|>", "<<EOT>>"
CHAT = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ["<pad>", "<s>", "</s>", "<|im_start|>", END, OWN_END]


def save_tokenizer(folder: Path, *, chat: str = "", pad: bool = True) -> Any:
    """Bytes as tokens, so that 10 begins with 1, and a space before a label is a token of its own."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    symbols = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({symbol: n for n, symbol in enumerate(symbols)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    result = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", additional_special_tokens=SPECIAL[3:],
        **({"pad_token": "<pad>"} if pad else {}),
    )  # fmt: skip
    if chat:
        result.chat_template = chat
    result.save_pretrained(folder)
    return result


def save_judge(
    family: str, folder: Path, *, chat: str = "", positions: int = 4096, seed: int = 3, n_labels: int = 1
) -> Path:
    """Save a random `gpt2`, `llama`, `xlnet` (reads both ways), `t5`, `llama-reward` (no padding token) or
    `bert-reward`; return `folder`."""
    import torch
    import transformers as t

    folder.mkdir(parents=True, exist_ok=True)
    size = len(save_tokenizer(folder, chat=chat, pad=family != "llama-reward"))
    marks: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "vocab_size": size}
    sizes: dict[str, Any] = {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
        "max_position_embeddings": positions,
    }  # fmt: skip
    kind, config = {
        "gpt2": lambda: (
            t.AutoModelForCausalLM, t.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=positions, **marks)
        ),
        "xlnet": lambda: (
            t.AutoModelForCausalLM, t.XLNetConfig(d_model=32, n_layer=2, n_head=4, d_inner=48, **marks)
        ),
        "llama": lambda: (t.AutoModelForCausalLM, t.LlamaConfig(**sizes, **marks)),
        "t5": lambda: (
            t.AutoModelForSeq2SeqLM,
            t.T5Config(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0, **marks),
        ),
        "llama-reward": lambda: (
            t.AutoModelForSequenceClassification,
            t.LlamaConfig(**sizes, **{**marks, "pad_token_id": None}, num_labels=n_labels),
        ),
        "bert-reward": lambda: (
            t.AutoModelForSequenceClassification, t.BertConfig(**sizes, **marks, num_labels=n_labels)
        ),
    }[family]()  # fmt: skip
    torch.manual_seed(seed)
    model = kind.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(4)
    model.save_pretrained(folder)
    return folder
