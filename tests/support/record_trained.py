# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Record small models as tools for quantisation-aware training leave them.

    python tests/support/record_trained.py TOOL

The tool must be installed, best in a virtual environment of its own, together with scikit-learn for its
pictures of digits; ``TOOLS`` lists the packages. All tools get the same network: a convolution with 8
filters, ReLU, max-pool, and a dense layer with 10 outputs. The files go to ``tests/recorded/trained``.
"""

from __future__ import annotations

import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parents[1] / "recorded" / "trained"
SHAPE = (1, 1, 8, 8)
TRAINING = 1400


def digits() -> tuple[Any, Any]:
    """Pictures (n, 1, 8, 8) from -1 to 1, and labels."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return (data.images[:, None] / 8 - 1).astype(np.float32), data.target


# --- PyTorch -----------------------------------------------------------------------------------


def torch_network() -> Any:
    import torch
    from torch import nn

    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10)
    )


def torch_train(network: Any, steps: int) -> Any:
    import torch

    pictures, labels = (torch.from_numpy(array[:TRAINING]) for array in digits())
    rng = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(network.parameters(), 5e-3)
    for _ in range(steps):
        chosen = torch.randint(0, TRAINING, (64,), generator=rng)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(pictures[chosen]), labels[chosen]).backward()
        optimizer.step()
    return network


def torch_fx(path: Path) -> None:
    """FX graph mode with plain FakeQuantize modules, exported before ``convert_fx``."""
    import torch
    from torch.ao.quantization import disable_observer, get_default_qat_qconfig_mapping
    from torch.ao.quantization.quantize_fx import prepare_qat_fx

    network = torch_train(torch_network(), 300).train()
    mapping = get_default_qat_qconfig_mapping("qnnpack", version=0)
    prepared = torch_train(prepare_qat_fx(network, mapping, (torch.zeros(SHAPE),)), 100).eval()
    prepared.apply(disable_observer)
    torch.onnx.export(prepared, (torch.zeros(SHAPE),), str(path), dynamo=False, opset_version=17)


def torchao_pt2e(path: Path) -> None:
    """PyTorch 2 export with the quantiser for XNNPACK."""
    import torch
    from torchao.quantization import pt2e
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e
    from torchao.testing.pt2e import _xnnpack_quantizer as xnnpack

    config = xnnpack.get_symmetric_quantization_config(is_per_channel=True, is_qat=True)
    quantizer = xnnpack.XNNPACKQuantizer().set_global(config)
    network = torch_train(torch_network(), 300)
    batch = ({0: torch.export.Dim("batch")},)
    exported = torch.export.export(network, (torch.zeros(2, *SHAPE[1:]),), dynamic_shapes=batch).module()
    prepared = prepare_qat_pt2e(exported, quantizer)
    pt2e.move_exported_model_to_train(prepared)
    converted = convert_pt2e(torch_train(prepared, 100))
    pt2e.move_exported_model_to_eval(converted)
    torch.onnx.export(converted, (torch.zeros(SHAPE),), str(path), dynamo=True, external_data=False)


def brevitas_qcdq(path: Path) -> None:
    """Layers of Brevitas with its default quantisers."""
    import torch
    from torch import nn

    try:
        import onnxoptimizer  # noqa: F401
    except ImportError:  # there are not wheels for all platforms, and its passes change no result
        sys.modules["onnxoptimizer"] = types.ModuleType("onnxoptimizer")
        sys.modules["onnxoptimizer"].optimize = lambda model, passes=None: model  # type: ignore[attr-defined]
    import brevitas.nn as qnn
    from brevitas.export import export_onnx_qcdq
    from brevitas.quant import Int8ActPerTensorFloat

    torch.manual_seed(0)
    network = nn.Sequential(
        qnn.QuantIdentity(act_quant=Int8ActPerTensorFloat),
        qnn.QuantConv2d(1, 8, 3, padding=1),
        qnn.QuantReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        qnn.QuantLinear(128, 10, bias=True),
    )
    export_onnx_qcdq(torch_train(network, 400).eval(), torch.zeros(SHAPE), export_path=str(path))


# --- tools that quantise a trained float model -------------------------------------------------


def float_onnx(path: Path) -> Path:
    import torch

    network = torch_train(torch_network(), 400).eval()
    plain = path.with_name("float.onnx")
    torch.onnx.export(network, (torch.zeros(SHAPE),), str(plain), dynamo=True, external_data=False)
    return plain


def neural_compressor(path: Path) -> None:
    """Static quantisation with PyTorch 2 export, as its documentation shows it."""
    import torch
    from neural_compressor.torch.export import export
    from neural_compressor.torch.quantization import convert, get_default_static_config, prepare

    network = torch_train(torch_network(), 400).eval()
    example = (torch.zeros(SHAPE),)
    prepared = prepare(export(network, example_inputs=example), get_default_static_config())
    for picture in digits()[0][:128]:
        prepared(torch.from_numpy(picture[None]))
    converted = convert(prepared)
    torch.onnx.export(converted, example, str(path), dynamo=True, external_data=False)


def olive(path: Path) -> None:
    """The pass OnnxStaticQuantization on the float model."""
    from olive.data.registry import Registry
    from olive.workflows import run

    @Registry.register_dataset()  # type: ignore[untyped-decorator]
    def digits_pictures(data_dir: Any, **_: Any) -> Any:
        return [({"input": picture}, 0) for picture in digits()[0][:128]]

    folder = Path(tempfile.mkdtemp())
    plain = float_onnx(folder / "any.onnx")
    source = {"type": "digits_pictures"}
    run(
        {
            "input_model": {"type": "OnnxModel", "model_path": str(plain)},
            "data_configs": [{"name": "digits", "type": "DataContainer", "load_dataset_config": source}],
            "passes": {"quantize": {"type": "OnnxStaticQuantization", "data_config": "digits"}},
            "output_dir": str(folder / "out"),
            "cache_dir": str(folder / "cache"),
        }
    )
    found = next(file for file in (folder / "out").rglob("*.onnx"))
    path.write_bytes(found.read_bytes())


# --- TensorFlow and Keras ----------------------------------------------------------------------


def keras_layers(layers: Any) -> list[Any]:
    return [
        layers.Input((*SHAPE[2:], 1)),
        layers.Conv2D(8, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(10),
    ]


def keras_train(keras: Any, network: Any, epochs: int) -> Any:
    pictures, labels = digits()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    network.compile("adam", loss)
    pictures = np.moveaxis(pictures[:TRAINING], 1, -1)
    network.fit(pictures, labels[:TRAINING], epochs=epochs, batch_size=32, verbose=0)
    return network


def tfmot(path: Path) -> None:
    """TensorFlow's Model Optimization Toolkit, with Keras 2, converted to TFLite."""
    import os

    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    import tensorflow as tf
    import tensorflow_model_optimization as toolkit
    import tf_keras

    tf_keras.utils.set_random_seed(0)
    network = keras_train(tf_keras, tf_keras.Sequential(keras_layers(tf_keras.layers)), 10)
    trained = keras_train(tf_keras, toolkit.quantization.keras.quantize_model(network), 4)
    converter = tf.lite.TFLiteConverter.from_keras_model(trained)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    path.write_bytes(converter.convert())


def keras_int8(path: Path) -> None:
    """``model.quantize("int8")`` of Keras 3, exported to ONNX."""
    import keras

    keras.utils.set_random_seed(0)
    network = keras_train(keras, keras.Sequential(keras_layers(keras.layers)), 14)
    network.quantize("int8")
    network.export(str(path), format="onnx")


TOOLS: dict[str, tuple[Callable[[Path], None], str]] = {
    "torch_fx.onnx": (torch_fx, "torch onnx onnxscript"),
    "torchao_pt2e.onnx": (torchao_pt2e, "torch torchao onnx onnxscript"),
    "brevitas_qcdq.onnx": (brevitas_qcdq, "torch brevitas onnx onnxscript"),
    "neural_compressor.onnx": (neural_compressor, "torch neural-compressor onnx onnxscript"),
    "olive.onnx": (olive, "torch olive-ai onnx onnxscript onnxruntime"),
    "tfmot.tflite": (tfmot, "tensorflow tf_keras tensorflow-model-optimization"),
    "keras_int8.onnx": (keras_int8, "tensorflow keras tf2onnx"),
}


def slim(path: Path) -> None:
    """One file, without the traces of Python's stack that exporters store with every node."""
    import onnx

    model = onnx.load(path)
    path.with_name(f"{path.name}.data").unlink(missing_ok=True)
    del model.metadata_props[:], model.graph.metadata_props[:], model.graph.value_info[:]
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    for value in (*model.graph.input, *model.graph.output, *model.graph.initializer):
        value.doc_string = ""
        del value.metadata_props[:]
    for function in model.functions:
        del function.metadata_props[:]
        for node in function.node:
            del node.metadata_props[:]
    onnx.save(model, path)


def main() -> int:
    names = {name.split(".")[0]: name for name in TOOLS}
    if len(sys.argv) != 2 or sys.argv[1] not in names:
        print(f"usage: record_trained.py {' | '.join(names)}")
        return 2
    name = names[sys.argv[1]]
    FOLDER.mkdir(parents=True, exist_ok=True)
    TOOLS[name][0](FOLDER / name)
    if name.endswith(".onnx"):
        slim(FOLDER / name)
    print(f"{name}: {(FOLDER / name).stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
