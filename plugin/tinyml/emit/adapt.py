# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What a model learns on the device as C: its memory, its description and its functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from tinyml.adapt.plan import SQUARED, AdaptPlan, Last, Prototypes, Threshold, learner_name, stored_bytes
from tinyml.adapt.scaling import Scaling
from tinyml.base import c
from tinyml.base.lazy_dataclass import dataclass
from tinyml.ir import DType
from tinyml.ops.framework.kernel import Table
from tinyml.ops.shared.quant import quant_of

STORED = "adapt/stored.c"
HEADER_BYTES, RUN_BYTES = 20, 4
DESCRIPTION_BYTES = {"last": 136, "prototypes": 84, "threshold": 96}
SCALING_BYTES = 36
"""On a core with 32 bits."""


@dataclass(frozen=True)
class AdaptCode:
    """What the templates print."""

    plan: AdaptPlan
    tables: tuple[Table, ...]
    values: list[c.Code]  # members of what is learnt, after its header
    run: list[c.Code]  # members of what is known about runs, after struct tinyml_adapt_run
    members: list[c.Code]  # initialiser of the description, after its first member
    learn: str  # functions of the runtime
    decide: str
    sources: tuple[str, ...]
    run_bytes: int
    holdout: dict[str, Any] = field(default_factory=dict)
    valid: str = ""  # a function of the runtime, if it is not that of the kind
    scaling: list[c.Code] = field(default_factory=list)  # initialiser of what is learnt about inputs

    @property
    def kind(self) -> str:
        return self.plan.kind

    @property
    def digest(self) -> list[str]:
        return [f"0x{byte:02x}" for byte in self.plan.digest]

    @property
    def learnt_bytes(self) -> int:
        return HEADER_BYTES + stored_bytes(self.plan.part)

    @property
    def ram_bytes(self) -> int:
        return self.learnt_bytes + self.run_bytes

    @property
    def flash_bytes(self) -> int:
        """Of tables and descriptions; the code comes with the runtime."""
        own = DESCRIPTION_BYTES[self.kind] + (SCALING_BYTES if self.scaling else 0)
        return own + sum(table.values.nbytes for table in self.tables)

    @property
    def squared(self) -> bool:
        return isinstance(self.plan.part, Last) and self.plan.part.loss == SQUARED

    @property
    def classes(self) -> int:
        part = self.plan.part
        return 1 if isinstance(part, Threshold) else part.classes

    @property
    def batch(self) -> int:
        return self.plan.part.batch if isinstance(self.plan.part, Last) else 1


def adapt_code(name: str, plan: AdaptPlan) -> AdaptCode:
    part = plan.part
    if isinstance(part, Last):
        return _last(name, plan, part)
    if isinstance(part, Prototypes):
        return _prototypes(name, plan, part)
    return _threshold(name, plan, part)


def _words(bytes_: int) -> int:
    return -(-bytes_ // 4) * 4


def _code(members: Mapping[str, object]) -> list[c.Code]:
    return c.code(c.initializer({key: str(value) for key, value in members.items()}, c.TAB))


def _float(value: float) -> str:
    return c.number(np.float32(value), np.dtype(np.float32))


def _last(name: str, plan: AdaptPlan, part: Last) -> AdaptCode:
    prefix = learner_name(name)
    arrays = {
        "weights": (part.weights, "weights of each class"),
        "bias": (part.bias, "biases, less the zero point of the input times the weights"),
        "multiplier": (part.multiplier.astype(np.int32), ""),
        "shift": (part.shift.astype(np.int8), ""),
        "unit": (part.unit, "what a step of each sum means"),
        "rate": (part.rate, "learning rates of weights, in their steps"),
        "bias_rate": (part.bias_rate, "learning rates of biases, in steps of the sums"),
        "limit": (part.limit, "how far weights may move, in their steps"),
        "bias_limit": (part.bias_limit, "how far biases may move, in steps of the sums"),
    }
    tables = [Table(f"{prefix}_{key}", values, holds=words) for key, (values, words) in arrays.items()]
    holdout: dict[str, Any] = {}
    if part.holdout is not None:
        embeddings, labels = part.holdout
        tables.append(Table(f"{prefix}_held_out", embeddings, holds="embeddings for the self-test"))
        tables.append(Table(f"{prefix}_held_out_labels", labels.astype(np.uint16), holds="their labels"))
        holdout = {"count": len(labels), "least": part.holdout_correct}
    values = part.classes * (part.features + 1)
    run = [f"float velocity[{values}];"] if part.momentum > 0 else []
    run += [
        f"float logits[{part.batch * part.classes}];",
        f"int8_t embeddings[{part.batch * part.features}];",
    ]
    run_bytes = RUN_BYTES + (4 * values if part.momentum > 0 else 0)
    run_bytes += 4 * part.batch * part.classes + _words(part.batch * part.features)
    members: dict[str, object] = {".values": f"{name}_learnt_values.values"}
    if part.momentum > 0:
        members[".velocity"] = f"{name}_seen.velocity"
    members |= {".logits": f"{name}_seen.logits", ".embeddings": f"{name}_seen.embeddings"}
    if holdout:
        members[".holdout"] = f"&{name}_held_out"
    members |= {f".{key}": f"{prefix}_{key}" for key in arrays}
    members |= {
        ".decay": _float(part.decay),
        ".momentum": _float(part.momentum),
        ".classes": part.classes,
        ".features": part.features,
        ".batch": part.batch,
        ".in_zero": part.in_zero,
        ".out_zero": part.out_zero,
        ".out_min": part.low,
        ".out_max": part.high,
        ".round_once": c.boolean(part.round_once),
        ".squared": c.boolean(part.loss == SQUARED),
    }
    return AdaptCode(
        plan,
        tuple(tables),
        c.code([f"float values[{values}]; /* biases, then weights */"]),
        c.code(run),
        _code(members),
        "tinyml_adapt_learn_last",
        "",
        (STORED, "adapt/last.c"),
        run_bytes,
        holdout,
    )


def _prototypes(name: str, plan: AdaptPlan, part: Prototypes) -> AdaptCode:
    values = [f"int16_t values[{part.classes * (part.features + 1)}];"]
    members = {
        ".distance": f"tinyml_adapt_{'cosine' if part.cosine else 'euclidean'}",
        ".values": f"{name}_learnt_values.values",
        ".embedding": f"{name}_seen.embedding",
        ".scale": _float(part.scale),
        ".reject": _float(part.reject or float(np.finfo(np.float32).max)),
        ".features": part.features,
        ".classes": part.classes,
        ".zero_point": part.zero_point,
    }
    return AdaptCode(
        plan,
        (),
        c.code(values),
        c.code([f"int8_t embedding[{part.features}];"]),
        _code(members),
        "tinyml_adapt_enroll",
        "tinyml_adapt_nearest",
        (STORED, "adapt/prototypes.c"),
        RUN_BYTES + _words(part.features),
    )


def _threshold(name: str, plan: AdaptPlan, part: Threshold) -> AdaptCode:
    members: dict[str, object] = {
        ".normal": f"&{name}_learnt_values.normal",
        ".score": f"&{name}_seen.score",
        ".sigmas": _float(part.sigmas),
        ".least": part.least,
        ".elements": part.output.elements,
    }
    for prefix, tensor in (("", part.output), ("in_", part.input)):
        if tensor is None:
            continue
        if tensor.dtype is DType.FLOAT32:
            members[f".{prefix}is_float"] = "true"
        else:
            members[f".{prefix}scale"] = _float(quant_of(tensor).scale)
            members[f".{prefix}zero_point"] = quant_of(tensor).zero_point
    code = AdaptCode(
        plan,
        (),
        c.code(["struct tinyml_adapt_normal normal;"]),
        c.code(["float score;"]),
        _code(members),
        "tinyml_adapt_learn_normal",
        "tinyml_adapt_unusual",
        (STORED, "adapt/threshold.c"),
        RUN_BYTES + 4,
    )
    return code if part.scaling is None else _scaled(name, code, part.scaling)


def _scaled(name: str, code: AdaptCode, part: Scaling) -> AdaptCode:
    """The same, with what is learnt about inputs."""
    table = Table(
        f"{learner_name(name)}_reference", part.reference.reshape(-1), holds="means, then deviations"
    )
    members: dict[str, object] = {
        ".count": f"&{name}_learnt_values.scaled",
        ".learnt": f"{name}_learnt_values.inputs",
        ".pending": f"{name}_seen.inputs",
        ".reference": table.name,
        ".rows": part.rows,
        ".features": part.features,
        ".least": part.least,
    }
    if part.input.dtype is DType.FLOAT32:
        members[".is_float"] = "true"
    else:
        members[".scale"] = _float(quant_of(part.input).scale)
        members[".zero_point"] = quant_of(part.input).zero_point
    size = 2 * part.features
    return replace(
        code,
        tables=(table,),
        values=[*code.values, *c.code(["uint32_t scaled; /* examples */", f"float inputs[{size}];"])],
        run=[*code.run, *c.code([f"float inputs[{size}];"])],
        members=[*code.members, *_code({".scaling": f"&{name}_scaling"})],
        learn="tinyml_adapt_learn_scaled",
        valid="tinyml_adapt_valid_scaled",
        sources=(*code.sources, "adapt/scaling.c"),
        run_bytes=code.run_bytes + 4 * size,
        scaling=_code(members),
    )


def summary_of(adapt: AdaptCode) -> dict[str, Any]:
    """For the summary in JSON."""
    return {
        "kind": adapt.kind,
        "ram_bytes": adapt.ram_bytes,
        "learnt_bytes": adapt.learnt_bytes,
        "flash_bytes": adapt.flash_bytes,  # tables and descriptions, which are part of weights_bytes
        "digest": adapt.plan.digest.hex(),
    }
