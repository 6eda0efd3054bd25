# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Record small language models as transformers and PyTorch's exporters write them.

    python -m tests.support.record_decoders

It needs a virtual environment with torch, transformers, onnx and onnxscript. The models are built from a
configuration, with random weights, so nothing is downloaded. The files go to ``tests/recorded/decoders``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "recorded" / "decoders"
TOKENS, WIDTH, LAYERS, HEADS, LONGEST = 16, 16, 2, 2, 16
GROUPS = {"llama": 1, "gpt2": 2}
"""Heads of keys and values."""
EXPORTERS = ("exported", "traced")
"""``torch.onnx.export`` with dynamo=True, and without."""
STATIC = "llama_static"
VERSIONS = "torch 2.13.0, transformers 5.23.0, onnxscript 0.7.2"


def network(family: str) -> Any:
    import torch
    from transformers import (  # type: ignore[import-not-found]
        GPT2Config,
        GPT2LMHeadModel,
        LlamaConfig,
        LlamaForCausalLM,
    )

    torch.manual_seed(0)
    if family == "gpt2":
        config = GPT2Config(
            vocab_size=TOKENS, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_positions=LONGEST
        )
        made = GPT2LMHeadModel(config)
    else:
        config = LlamaConfig(
            vocab_size=TOKENS,
            hidden_size=WIDTH,
            intermediate_size=24,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            num_key_value_heads=GROUPS[family],
            max_position_embeddings=LONGEST,
        )
        made = LlamaForCausalLM(config)
    for weights in made.parameters():  # larger than at the start of a training, so that tokens matter
        weights.data = torch.randn_like(weights) * 0.3 if weights.ndim > 1 else torch.rand_like(weights) + 0.5
    return made.eval()


def names() -> tuple[list[str], list[str]]:
    """Of the caches: past and present."""
    kinds = [f"{layer}.{what}" for layer in range(LAYERS) for what in ("key", "value")]
    return [f"past_key_values.{kind}" for kind in kinds], [f"present.{kind}" for kind in kinds]


def growing(family: str, exporter: str) -> None:
    import torch
    from transformers.cache_utils import DynamicCache  # type: ignore[import-not-found]

    class Step(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network(family)

        def forward(self, input_ids: Any, attention_mask: Any, position_ids: Any, *pasts: Any) -> Any:
            cache = DynamicCache()
            for layer in range(LAYERS):
                cache.update(pasts[2 * layer], pasts[2 * layer + 1], layer)
            found = self.network(
                input_ids=input_ids,
                attention_mask=attention_mask,
                position_ids=position_ids,
                past_key_values=cache,
            )
            layers = found.past_key_values.layers
            return (found.logits, *(rows for layer in layers for rows in (layer.keys, layer.values)))

    rows = 5
    pasts = [torch.randn(1, GROUPS[family], rows, WIDTH // HEADS) for _ in range(2 * LAYERS)]
    tokens = torch.zeros(1, 1, dtype=torch.long)
    operands = (tokens, torch.ones(1, rows + 1, dtype=torch.long), torch.tensor([[rows]]), *pasts)
    before, after = names()
    inputs, outputs = ["input_ids", "attention_mask", "position_ids", *before], ["logits", *after]
    path = FOLDER / f"{family}_{exporter}.onnx"
    if exporter == "exported":
        past = torch.export.Dim("past_sequence_length", min=2, max=LONGEST - 1)
        open_axes = {
            "input_ids": None,
            "attention_mask": {1: past + 1},
            "position_ids": None,
            "pasts": tuple({2: past} for _ in pasts),
        }
        more: dict[str, Any] = {"dynamo": True, "dynamic_shapes": open_axes, "external_data": False}
    else:
        total = "total_sequence_length"
        axes = {"attention_mask": {1: total}, **{name: {2: total} for name in after}}
        axes |= {name: {2: "past_sequence_length"} for name in before}
        more = {"dynamo": False, "dynamic_axes": axes, "opset_version": 17}
    torch.onnx.export(Step(), operands, str(path), input_names=inputs, output_names=outputs, **more)


def static() -> None:
    """Caches of the longest length; the mask is computed from the position."""
    import torch
    from transformers.cache_utils import StaticCache

    class Step(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network("llama")

        def forward(self, input_ids: Any, cache_position: Any, *pasts: Any) -> Any:
            cache = StaticCache(config=self.network.config, max_cache_len=LONGEST)
            for number, layer in enumerate(cache.layers):
                keys, values = pasts[2 * number : 2 * number + 2]
                layer.lazy_initialization(keys, values)
                layer.keys, layer.values, layer.cumulative_length = keys, values, cache_position.clone()
            seen = torch.arange(LONGEST)[None, None, None, :] <= cache_position[None, None, :, None]
            found = self.network(
                input_ids=input_ids,
                attention_mask=seen,
                position_ids=cache_position[None],
                past_key_values=cache,
            )
            return (found.logits, *(rows for layer in cache.layers for rows in (layer.keys, layer.values)))

    pasts = [torch.randn(1, GROUPS["llama"], LONGEST, WIDTH // HEADS) for _ in range(2 * LAYERS)]
    before, after = names()
    torch.onnx.export(
        Step(),
        (torch.zeros(1, 1, dtype=torch.long), torch.tensor([3]), *pasts),
        str(FOLDER / f"{STATIC}.onnx"),
        input_names=["input_ids", "cache_position", *before],
        output_names=["logits", *after],
        dynamo=True,
        external_data=False,
    )


def smaller(path: Path) -> None:
    """Without the places in PyTorch's sources, which are most of a small file."""
    import onnx

    model = onnx.load(path)
    for each in (*model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output):
        del each.metadata_props[:]
        each.doc_string = ""
    del model.graph.metadata_props[:]
    del model.graph.value_info[:]
    onnx.save(model, path)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for family in GROUPS:
        for exporter in EXPORTERS:
            growing(family, exporter)
    static()
    for path in sorted(FOLDER.glob("*.onnx")):
        smaller(path)
        print(f"{path.name}: {path.stat().st_size} bytes, {VERSIONS}")


if __name__ == "__main__":
    main()
