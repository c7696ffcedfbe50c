"""Tiny random causal language models with a word tokenizer, saved like real ones."""

from __future__ import annotations

from pathlib import Path

WORDS = ["<pad>", "<unk>", "<s>", "</s>", "the", "cat", "dog", "sat", "on", "mat", "tea", "i", "you", "like", "no", "."]


def tiny_causal(family: str, folder: Path, *, positions: int = 32, seed: int = 5) -> str:
    """Saves a random gpt2 or llama (width 32, 2 layers) that reads `positions` tokens; returns its folder."""
    import torch
    import transformers as t
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    t.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<pad>"
    ).save_pretrained(folder)
    marks = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0, "vocab_size": len(WORDS)}
    config = {
        "gpt2": lambda: t.GPT2Config(
            n_embd=32, n_layer=2, n_head=4, n_positions=positions, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **marks
        ),
        "llama": lambda: t.LlamaConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
            max_position_embeddings=positions, **marks,
        ),
    }[family]()  # fmt: skip
    torch.manual_seed(seed)
    model = t.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(6)
    model.save_pretrained(folder)
    return str(folder)


def plain_log_likelihood(folder: str, text: str, context: str = "") -> tuple[float, int]:
    """The sum over the text's tokens from one forward pass without windows, and the number of tokens."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()
    before, after = (tokenizer(part, add_special_tokens=False)["input_ids"] for part in (context, text))
    tokens = [tokenizer.bos_token_id, *before, *after]
    with torch.no_grad():
        found = torch.log_softmax(model(torch.tensor([tokens])).logits[0].double(), dim=-1)
    first = len(tokens) - len(after)
    return sum(float(found[i - 1, tokens[i]]) for i in range(first, len(tokens))), len(after)
