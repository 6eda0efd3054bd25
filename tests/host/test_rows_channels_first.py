# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``io: rows`` of models whose input has channels first: a row has all channels of a step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tinyml
from tests.host.test_rows import check, compiled, sound
from tests.support.batch import Item
from tests.support.chains import FLAT, random_chain
from tests.support.channels_first import CHANNELS, CLASSES, STEPS, accelerometer, channels_first, movements
from tests.support.sketch import Sketch
from tests.support.watching import on_device, without_cycles
from tinyml.api.connected import Device
from tinyml.base.errors import ConfigError, UnsupportedError
from tinyml.cost.float_layers import float_layers
from tinyml.harness.opening import BareMachine
from tinyml.ir import DType, Op, Quant
from tinyml.ir.interpreter import interpret
from tinyml.ir.row_order import RowOrder
from tinyml.memory.bands.row_arrangement import order_between, row_order
from tinyml.ops.conv.conv import Conv
from tinyml.ops.pool.average import AveragePool
from tinyml.ops.quantization.quantize import Quantize
from tinyml.ops.reshape import Reshape
from tinyml.ops.transpose import Transpose
from tinyml.pipeline import Options, compile_model
from tinyml.verbs.cli import main


def order_of(*moves: Transpose | Reshape, shape: Sequence[int]) -> RowOrder | None:
    places = np.arange(np.prod(shape)).reshape(shape)
    for move in moves:
        places = places.transpose(move.perm) if isinstance(move, Transpose) else places.reshape(move.shape)
    return order_between(places, tuple(shape))


def test_orders() -> None:
    """By axes of the input, if it has them; an order of its own after a reshape that splits an axis."""
    to_nhwc = Transpose((0, 2, 3, 1))
    assert order_of(to_nhwc, shape=(1, 3, 8, 6)) == RowOrder((1, 8, 6, 3), (0, 2, 3, 1))
    assert order_of(to_nhwc, shape=(1, 3, 1, 6)) == RowOrder((1, 1, 6, 3), (0, 2, 3, 1))
    assert order_of(to_nhwc, shape=(1, 3, 8, 1)) == RowOrder((1, 8, 1, 3), (0, 2, 3, 1))
    steps = order_of(Reshape((1, 1, 3, 8)), Transpose((0, 1, 3, 2)), shape=(1, 3, 8))
    assert steps == RowOrder((1, 8, 3), (0, 2, 1))
    flat = order_of(Reshape((1, 1, 3, 8)), Transpose((0, 1, 3, 2)), shape=(1, 24))
    assert flat == RowOrder((1, 1, 8, 3), (0, 1, 3, 2))
    assert flat is not None
    assert flat.file_shape == (1, 1, 3, 8)
    assert RowOrder.of_summary(json.loads(json.dumps(flat.summary))) == flat
    assert order_of(Transpose((0, 2, 1)), Reshape((1, 4, 3, 2)), shape=(1, 3, 8)) is None
    array = np.arange(24).reshape(1, 24)
    np.testing.assert_array_equal(flat.arranged(array)[0, 0, 5], [5, 13, 21])


@pytest.mark.parametrize("dtype", [DType.INT8, DType.FLOAT32])
def test_numbers(dtype: DType) -> None:
    """Images and sequences; a model with one channel needs no other order."""
    items = []
    for seed in (1, 2, 5, 8, 11, 14):
        for extents in ((29, 9), FLAT):
            chain = random_chain(seed, dtype, extents=extents)
            graph, name = channels_first(chain.graph()), f"fed{seed}_{extents[0]}"
            if len(graph.consumers()[graph.nodes[0].outputs[0]]) > 1:  # a residual block around the input
                with pytest.raises(UnsupportedError, match=r"needs all of it|is read 2 times"):
                    compiled(graph, name)
                continue
            made = compiled(graph, name, optimize=("balanced", "ram", "speed")[seed % 3])
            order = row_order(made.graph)
            assert order == RowOrder((1, *extents, 4), (0, 2, 3, 1))
            assert made.summary["rows"]["axes"] == [0, 2, 3, 1]
            assert made.summary["inputs"][0]["shape"] == [1, 4, *extents]
            width = 4 * (1 if extents == FLAT else extents[1])
            assert f"#define {name.upper()}_ROW_ELEMENTS {width}\n" in made.files[f"{name}.h"]
            samples = [{"given": chain.sketch.sample()["in0"].transpose(0, 3, 1, 2)} for _ in range(2)]
            items.append((Item(name, made.files, samples), graph))
    assert len(items) > 8
    chain = sound(dtype)
    made = compiled(graph := channels_first(chain.graph()), "sound")
    assert row_order(made.graph) is None
    samples = [{"given": chain.sketch.sample()["in0"].transpose(0, 3, 1, 2)}]
    check([*items, (Item("sound", made.files, samples), graph)], exact=dtype is DType.INT8)


def test_the_order_changes_before_conversions() -> None:
    """Quantise, reshape and transpose in any order: the application feeds what comes before all of it."""
    items = []
    quant = Quant.per_tensor(0.03, 3)
    turned, stored = Transpose((0, 2, 3, 1)), Quantize(DType.INT8, quant)
    ways: dict[str, tuple[Op, Op]] = {"first": (turned, stored), "last": (stored, turned)}
    for number, (name, (before, after)) in enumerate(ways.items()):
        sketch = Sketch(number)
        x = sketch.input((1, 3, 20, 6), DType.FLOAT32)
        y = sketch.add(after, sketch.add(before, x))
        y = sketch.add(Conv((2, 2)), y, sketch.weights((8, 3, 3, 3)), sketch.bias(8), quant=quant)
        made = compiled(graph := sketch.graph(y), name)
        assert made.selected[1].layer.op.label() == "arrival_quantize_conv"
        assert made.summary["rows"] == {
            "count": 20,
            "row_bytes": 72,
            "shape": [1, 20, 6, 3],
            "axes": [0, 2, 3, 1],
        }
        items.append((Item(name, made.files, [sketch.sample() for _ in range(2)]), graph))
    sketch = Sketch(5)
    x = sketch.input((1, 60), DType.FLOAT32)
    y = sketch.add(Quantize(DType.INT8, quant), x)
    y = sketch.add(Transpose((0, 2, 1)), sketch.add(Reshape((1, 3, 20)), y))
    y = sketch.add(Reshape((1, 1, 20, 3)), y)
    y = sketch.add(Conv(pads=(0, 1, 0, 1)), y, sketch.weights((8, 1, 3, 3)), sketch.bias(8), quant=quant)
    made = compiled(graph := sketch.graph(y), "flat")
    assert made.summary["rows"] == {
        "count": 20,
        "row_bytes": 12,
        "shape": [1, 1, 20, 3],
        "axes": [0, 1, 3, 2],
    }
    check([*items, (Item("flat", made.files, [sketch.sample() for _ in range(2)]), graph)])


def test_what_is_more_than_another_order() -> None:
    """Groups of steps become channels: no order of the axes of the input has that effect."""
    sketch = Sketch(1)
    x = sketch.input((1, 3, 16), DType.FLOAT32)
    y = sketch.add(Reshape((1, 1, 8, 6)), sketch.add(Transpose((0, 2, 1)), x))
    y = sketch.add(Transpose((0, 1, 3, 2)), y)
    y = sketch.add(AveragePool((1, 2), (1, 1), pads=(0, 0, 0, 0)), y)
    with pytest.raises(UnsupportedError, match="needs all of it"):
        compiled(sketch.graph(y))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("accelerometer")
    model = accelerometer(folder)
    data = folder / "typical.npz"
    np.savez(data, x=movements(50)[:, 0])
    tinyml.quantize(model, data).save(folder / "int8.onnx")
    return {"float": model, "int8": folder / "int8.onnx", "data": data}


@pytest.mark.parametrize("kind, io", [("float", "rows"), ("int8", "rows"), ("int8", "rows,int8")])
def test_a_model_of_pytorch(models: dict[str, Path], kind: str, io: str) -> None:
    """Users give inputs as the file has them; the C takes steps."""
    whole = io.replace("rows", "arena").removeprefix("arena,")
    fed, usual = (tinyml.compile(models[kind], target="host", io=i, optimize="ram") for i in (io, whole))
    header = fed.files[f"{fed.name}.h"]
    for line in (
        f"_ROWS {STEPS}",
        f"_ROW_ELEMENTS {CHANNELS}",
        f"_INPUT_DIM1 {STEPS}",
        f"_INPUT_DIM2 {CHANNELS}",
    ):
        assert f"{line}\n" in header
    assert f"1x{STEPS}x{CHANNELS} " in header
    assert f"(1x{CHANNELS}x{STEPS} in the model file)" in header
    assert fed.inputs[0].shape == (1, CHANNELS, STEPS)
    inputs = movements(3, 1)
    np.testing.assert_array_equal(tinyml.run(fed, inputs)["y"], tinyml.run(usual, inputs)["y"])
    inner = list(interpret(fed.built.graph, [{"x": one.astype(fed.inputs[0].dtype)} for one in inputs]))
    assert inner[0]["y"].shape == (1, CLASSES)
    with pytest.raises(ConfigError, match="x"):
        tinyml.run(fed, inputs.transpose(0, 1, 3, 2))


def test_layers_that_take_rows_are_not_called_float(models: dict[str, Path]) -> None:
    """The first chain quantises float rows and computes integers."""
    fed = compile_model(models["int8"], Options(target="host", io="rows"))
    assert fed.selected[1].layer.op.label().startswith("arrival_quantize_conv")
    assert float_layers(fed) == ()


def test_golden_inputs_arrive_in_the_order_of_rows(models: dict[str, Path], tmp_path: Path) -> None:
    """Those of the test image, and the rows of its test set."""
    inputs = movements(4, 2)
    labels = tinyml.run(models["float"], inputs)["y"].argmax(axis=-1).reshape(-1)
    np.savez(tmp_path / "test.npz", x=inputs[:, 0], y=labels)
    (tmp_path / "model.onnx").write_bytes(models["float"].read_bytes())
    (tmp_path / "CMakeLists.txt").write_text("find_package(Zephyr)\n")
    (tmp_path / "tinyml.yaml").write_text(
        "models:\n  - name: moved\n    file: model.onnx\n    io: rows\n"
        "    evaluate: {data: test.npz, labels: y, min_accuracy: 1, rows: 4}\n"
    )
    np.savez(tmp_path / "mine.npz", x=inputs[:1, 0])
    assert main(["test", "moved", "--app", str(tmp_path), "--input", str(tmp_path / "mine.npz")]) == 0
    expected = [float(value) for value in inputs[0, 0].T.reshape(-1)[:4]]
    for file, table in (("golden.h", "in0_0"), ("evaluation.h", "row0_0")):
        text = (tmp_path / "tests" / "moved" / "src" / file).read_text()
        values = text.split(f"static const float {table}[")[1].split("{", 1)[1].split("}")[0]
        found = [float(word.strip().rstrip("f")) for word in values.split(",")[:4]]
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["float", "int8"])
def test_a_connected_program_counts_channels(models: dict[str, Path], kind: str) -> None:
    """The device has the channels in its last axis; samples are those of the model file."""
    compiled_ = tinyml.compile(
        models[kind], target="host", io="rows", watch=True, watch_data=models["data"], watch_channels=True
    )
    inputs = movements(20, 3)
    found, expected = on_device(compiled_, "host", {"x": inputs})
    assert without_cycles(found) == expected.cbor
    assert len(found.channels) == CHANNELS
    assert found.drift is not None
    assert found.drift < 0.05
    inputs[:, :, 1] *= 3
    found, expected = on_device(compiled_, "host", {"x": inputs})
    assert without_cycles(found) == expected.cbor
    drifts = [part.drift for part in found.channels]
    assert drifts.index(max(drifts)) == 1  # type: ignore[type-var]


def test_a_recurrent_layer_first_is_refused_by_name(tmp_path: Path) -> None:
    """Some of its operands are left out and have no tensor."""
    rng = np.random.default_rng(1)
    weights = {"w": rng.normal(0, 1, (1, 12, 3)), "r": rng.normal(0, 1, (1, 12, 4))}
    graph = helper.make_graph(
        [helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=4)],
        "recurrent",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 1, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(values.astype(np.float32), name) for name, values in weights.items()],
    )
    path = tmp_path / "recurrent.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    with pytest.raises(UnsupportedError, match=r"the input 'x' \(5x1x3\): \w+ '\w+' needs all of it"):
        compile_model(path, Options(io="rows"))


def test_a_device_that_knows_its_own_order_only(models: dict[str, Path]) -> None:
    """Without the model, samples are in the order of the rows; none are taken in another one."""
    compiled_ = tinyml.compile(models["float"], target="host", io="rows")
    inputs = movements(2, 4)
    expected = tinyml.run(compiled_, inputs)["y"]
    fed = inputs[:, 0].transpose(0, 2, 1)
    with Device(BareMachine(compiled_.built.files, "host"), "host", 30, 60) as device:
        np.testing.assert_array_equal(device.run(None, {"x": fed}).outputs["y"], expected)
        with pytest.raises(ConfigError, match="has shape 2x3x64; the model takes 1x64x3"):
            device.run(None, {"x": inputs[:, 0]})
        with pytest.raises(ConfigError, match="as 1x64x3; the original takes it as 1x3x64"):
            device.evaluate({"x": fed}, np.zeros(2, np.int64), against=models["float"])


@pytest.mark.parametrize("between", [Transpose((0, 2, 3, 1)), Reshape((1, 12, 6, 3))])
def test_an_input_that_is_an_output_too(between: Op) -> None:
    """It is never in memory as a whole, also if the layer that takes the rows reads it in another shape."""
    sketch, quant = Sketch(1), Quant.per_tensor(0.04, -5)
    x = sketch.input((1, 3, 12, 6), DType.INT8, quant)
    y = sketch.add(Conv(), sketch.add(between, x), sketch.weights((8, 3, 3, 3)), sketch.bias(8), quant=quant)
    with pytest.raises(UnsupportedError, match=r"'in0' is read 2 times \(Conv, the application\)"):
        compiled(sketch.graph(y, x))


def test_rows_are_not_whole_channels() -> None:
    """The output of the quantisation keeps the transposition behind it, so a row would be a channel."""
    sketch, quant = Sketch(1), Quant.per_tensor(0.04, -5)
    x = sketch.input((1, 3, 12, 6), DType.FLOAT32)
    stored = sketch.add(Quantize(DType.INT8, quant), sketch.add(Transpose((0, 2, 3, 1)), x))
    y = sketch.add(Conv(), stored, sketch.weights((8, 3, 3, 3)), sketch.bias(8), quant=quant)
    with pytest.raises(UnsupportedError, match=r"Transpose '\w+' needs all of it, and cannot come before"):
        compiled(sketch.graph(y, stored))
