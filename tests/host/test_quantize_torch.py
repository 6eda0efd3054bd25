# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The guide docs/quantize.md with PyTorch itself: from a trained module to C, by both exporters."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.quantizing import digits, run_host, snippet
from tinyml.pipeline import Options, compile_model
from tinyml.verbs import cli

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnxruntime", reason="the quantiser is onnxruntime's")
pytest.importorskip("sklearn", reason="the digits data come with scikit-learn")


@pytest.fixture(scope="module")
def model() -> Any:
    """Batch normalisation, depthwise, residual: what a module of today has. Trained on the digits."""
    nn = torch.nn
    torch.manual_seed(1)

    class Net(nn.Module):  # type: ignore[misc, name-defined]  # PyTorch may not be there to be checked
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
            self.depthwise = nn.Sequential(
                nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.ReLU6(), nn.Conv2d(16, 16, 1)
            )
            self.last = nn.Sequential(nn.Flatten(), nn.Linear(16 * 4 * 4, 10))

        def forward(self, x: Any) -> Any:
            x = self.first(x)
            return self.last(nn.functional.max_pool2d(torch.relu(x + self.depthwise(x)), 2))

    net = Net()
    images, labels, held_back = digits()
    x, y = torch.from_numpy(images[~held_back]), torch.from_numpy(labels[~held_back])
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(40):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    return net


@pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "legacy"])
@pytest.mark.filterwarnings("ignore")  # PyTorch's own, about its exporters
def test_guide_from_pytorch_to_c(
    dynamo: bool, model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if dynamo:
        pytest.importorskip("onnxscript", reason="PyTorch's new exporter needs it")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.onnx, "export", partial(torch.onnx.export, dynamo=dynamo))
    exec(snippet("export"), {"model": model})
    exec(snippet("calibration"), {})
    assert cli.main(snippet("quantize").split()[1:]) == 0
    compiled = compile_model(tmp_path / "model_int8.onnx", Options("model", "host"))
    inside = {layer.op.kind for layer in compiled.graph.layers() if layer.output.dtype.is_float}
    assert inside == {"Dequantize"}
    images, labels, held_back = digits()
    with torch.no_grad():
        in_float = model(torch.from_numpy(images[held_back])).numpy()
    found = run_host(compiled, images[held_back])
    right = [np.mean(logits.argmax(axis=1) == labels[held_back]) for logits in (in_float, found)]
    assert right[0] > 0.95
    assert right[0] - right[1] <= 0.005
