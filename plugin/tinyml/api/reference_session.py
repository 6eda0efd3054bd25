# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``tinyml.reference_session``: onnxruntime with the integers that the device computes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyml.api.sources import ModelLike, as_model

if TYPE_CHECKING:
    from tinyml.reference.session import Session


def reference_session(model: ModelLike) -> Session:
    """A session of onnxruntime whose ``run({"input": array})`` returns the outputs by name.

    A session of your own can differ on int8 models: on x86 CPUs without VNNI, onnxruntime's sums saturate,
    and its optimisations round elsewhere. This one runs the model as it is written, with integers that are
    exact on every CPU.

    :param model: a file, bytes, or a model of a training framework
    """
    from tinyml.reference.session import Session

    with as_model(model).file() as path:
        return Session(path)
