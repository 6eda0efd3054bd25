# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""``watch: true``: what a model counts, on the host and in numpy, and what it is compared with."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import tinyml
from tests.support.quantizing import FLOAT, digits, write_calibration
from tests.support.watching import noise, on_device, rows_of, several, without_cycles
from tinyml import harness
from tinyml.base.errors import ConfigError, ModelError, TinymlError, ToolError
from tinyml.cost.estimate import estimate_for
from tinyml.importers import metadata, read_model
from tinyml.ir import Array, DType, Graph, Quant, Tensor
from tinyml.pipeline import Options, compile_model
from tinyml.report.collect import describe
from tinyml.slots.data_pack import pack_data
from tinyml.slots.pack import Slot, pack_compiled
from tinyml.slots.version import Version
from tinyml.watch import cbor
from tinyml.watch.counting import Counter, drift
from tinyml.watch.figures import ClassFigures, ValueFigures, figures, of_cbor
from tinyml.watch.keys import keys, log2, value_of
from tinyml.watch.plan import WHOLE, Classes, Values, WatchPlan, plan_watch
from tinyml.watch.reference import KEY, Grid, counted, from_text, of_stored, to_text


@pytest.fixture(scope="module")
def int8_digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digits")
    made = tinyml.quantize(FLOAT, write_calibration(folder), io="int8")
    made.save(folder / "digits8.onnx")
    return folder / "digits8.onnx"


def integers(images: Array, compiled: tinyml.CompiledModel) -> dict[str, Array]:
    (tensor,) = (compiled.built.graph.tensors[name] for name in compiled.built.graph.inputs)
    assert tensor.quant is not None
    stored = np.clip(np.rint(images / tensor.quant.scale) + tensor.quant.zero_point, -128, 127)
    return {tensor.name: stored.astype(np.int8).reshape(-1, *tensor.shape[1:])}


def test_without_it_nothing_changes(int8_digits: Path) -> None:
    """Not even what the header includes; golden files hold the rest."""
    plain = compile_model(int8_digits, Options(name="m"))
    assert not any("watch" in text for text in plain.files.values())
    assert plain.watch is None


def test_a_device_counts_what_numpy_counts(int8_digits: Path) -> None:
    compiled = tinyml.compile(int8_digits, target="host", watch=True, name="digits")
    images, _, held_back = digits()
    data = integers(images[held_back][:60], compiled)
    found, expected = on_device(compiled, "host", data)
    assert without_cycles(found) == expected.cbor
    assert found.runs == 60
    decided = found.decided
    assert decided is not None
    assert sum(decided.decisions) == 60
    assert sum(map(sum, decided.transitions)) == decided.switches > 20
    assert found.inputs[0].reference
    assert found.drift is not None
    assert found.drift < 0.01
    noisy, _ = on_device(compiled, "host", integers(images[held_back][:60] * 0.4, compiled))
    assert noisy.drift is not None
    assert noisy.drift > 20 * found.drift
    assert noisy.decided is not None
    assert noisy.decided.margin < decided.margin  # type: ignore[operator]
    assert noisy.decided.entropy > decided.entropy  # type: ignore[operator]


def test_several_inputs_and_outputs_of_float(tmp_path: Path) -> None:
    compiled = tinyml.compile(
        several(tmp_path), target="host", watch=True, watch_data=tmp_path / "typical.npz", name="m"
    )
    found, expected = on_device(compiled, "host", noise(50, 2))
    assert without_cycles(found) == expected.cbor
    assert found.version == 7
    assert [part.name for part in found.inputs] == ["x", "z"]
    assert all(part.drift is not None and part.drift < 0.03 for part in found.inputs)
    p, v, w = found.outputs
    assert isinstance(p, ClassFigures)
    assert p.entropy is not None
    assert isinstance(v, ValueFigures)
    assert isinstance(w, ValueFigures)
    assert v.drift is not None
    assert w.drift is not None
    assert max(v.drift, w.drift) < 0.1
    assert found.outputs[2].reference  # type: ignore[union-attr]
    alone = tinyml.compile(several(tmp_path), target="host", watch=True, name="m")
    assert len([note for note in alone.notes if "is not counted" in note]) == 4  # nothing says what is usual
    wide, _ = on_device(compiled, "host", noise(50, 2, 3.0))
    assert wide.drift is not None
    assert wide.drift > 0.1
    assert wide.inputs[0].outside > 0.1 > found.inputs[0].outside


def test_the_counters_are_clean_under_sanitizers(tmp_path: Path) -> None:
    compiled = compile_model(
        several(tmp_path), Options(target="host", watch=True, watch_data=tmp_path / "typical.npz")
    )
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38, 1, -1, 0.5], np.float32)
    rows = [*rows_of(noise(3, 1)), {"x": odd[np.newaxis], "z": odd[np.newaxis, :5]}]
    options = harness.Options(sanitize=True, strict=True)
    assert len(harness.run_files(compiled.files, "host", rows, options=options).outputs) == 4


def test_in_the_callers_memory(int8_digits: Path) -> None:
    text = compile_model(int8_digits, Options(name="m", io="caller", watch=True)).files["m.c"]
    before, _, after = text.partition("tinyml_watch_before(")
    assert "return TINYML_EINVAL" in before  # a buffer that is NULL is not counted
    assert "const void *const outputs[] = { output };" in after


def test_replay_counts_like_a_device(int8_digits: Path) -> None:
    compiled = tinyml.compile(int8_digits, target="host", watch=True, name="digits8")
    images, _, _ = digits()
    data = integers(images[:25], compiled)
    first, second, third = tinyml.replay(int8_digits, next(iter(data.values())), period=10)
    assert [part.runs for part in (first, second, third)] == [10, 10, 5]
    found, _ = on_device(compiled, "host", {name: array[10:20] for name, array in data.items()})
    assert without_cycles(found) == second.cbor
    with pytest.raises(ConfigError, match="a period of 0 runs"):
        tinyml.replay(int8_digits, next(iter(data.values())), period=0)
    with pytest.raises(ConfigError, match="was not compiled to be watched"):
        tinyml.replay(tinyml.compile(int8_digits, target="host"), next(iter(data.values())))


def test_a_model_without_counters(int8_digits: Path) -> None:
    with (
        tinyml.connect("host", model=int8_digits) as device,
        pytest.raises(ConfigError, match="counts nothing"),
    ):
        device.watch()


def test_the_quantiser_keeps_what_it_saw(int8_digits: Path) -> None:
    kept = from_text(metadata(read_model(int8_digits))[KEY])
    (name,) = kept  # scores of classes have no histogram
    images, _, held_back = digits()
    seen = images[~held_back][:200]
    assert kept[name] == counted(seen, kept[name].grid)
    assert sum(kept[name].counts) == seen.size


def test_watch_data_replaces_it(int8_digits: Path, tmp_path: Path) -> None:
    images, _, _ = digits()
    np.save(tmp_path / "dark.npy", images[:50] * 0.3)
    own = compile_model(int8_digits, Options(watch=True))
    other = compile_model(int8_digits, Options(watch=True, watch_data=tmp_path / "dark.npy"))
    assert own.watch is not None
    assert other.watch is not None
    assert own.watch.inputs[0].reference != other.watch.inputs[0].reference
    assert "watched against dark.npy" in other.files["digits8.c"]


def test_the_memory_is_planned(int8_digits: Path) -> None:
    plain, watched = (compile_model(int8_digits, Options(name="m", watch=watch)) for watch in (False, True))
    assert watched.watch is not None
    added = watched.watch.ram_bytes
    assert watched.summary["state_bytes"] - plain.summary["state_bytes"] == added == 24 + 32 + 20 + 40 + 92
    assert watched.summary["weights_bytes"] > plain.summary["weights_bytes"]
    assert f"sizeof(m_counted) == {added}" in watched.files["m.c"]
    found = json.loads(watched.files["m.json"])["watch"]
    assert found["ram_bytes"] == added
    more = estimate_for(watched).flash_bytes - estimate_for(plain).flash_bytes  # type: ignore[union-attr]
    assert 0 <= more - found["flash_bytes"] - found["code_bytes"] < 200  # and what calls it
    assert any(
        note.startswith(f"watched: {added} bytes of RAM")
        for note in describe(watched, "m.onnx", "auto", []).notes
    )


def test_mistakes(int8_digits: Path) -> None:
    with pytest.raises(ConfigError, match="watch_data is for a model that is watched"):
        Options(watch_data="data.npz")
    with pytest.raises(ConfigError, match="must be true or false, found 'maybe'"):
        Options(watch="maybe")
    with pytest.raises(TinymlError, match=r"there is no .*nowhere\.npz"):
        compile_model(int8_digits, Options(watch=True, watch_data="nowhere.npz"))
    with pytest.raises(ConfigError, match="a model as data has no counters"):
        pack_data(int8_digits, Options(watch=True), (), Version(1))
    with pytest.raises(ConfigError, match="a model in a slot has no counters"):
        pack_compiled(compile_model(int8_digits, Options(watch=True)), (Slot("a", 0),), Version(1))
    for text in ("", "[]", '{"x": {"scale": 0, "zero_point": 0, "counts": [0]}}', '{"x": {"scale": 1}}'):
        with pytest.raises(ModelError, match=r"metadata 'tinyml\.watch' cannot be read"):
            from_text(text)


def test_logarithms_are_close_and_grow() -> None:
    found = [log2(x) for x in range(1, 65537)]
    assert found == sorted(found)
    errors = [abs(value / 65536 - math.log2(x)) for x, value in enumerate(found, 1)]
    assert max(errors) < 0.0008
    assert [log2(1 << bits) for bits in range(17)] == [bits << 16 for bits in range(17)]


def test_drift_is_the_divergence() -> None:
    rng = np.random.default_rng(8)
    for _ in range(200):
        bins = rng.integers(0, 10 ** rng.integers(1, 10), 8)
        shares = rng.dirichlet(np.ones(8))
        reference = np.floor(shares * WHOLE).astype(int)
        reference[0] += WHOLE - reference.sum()
        if not bins.sum():
            continue
        p, q = bins / bins.sum(), reference / WHOLE
        m = (p + q) / 2
        real = sum(float(np.sum(a[a > 0] * np.log2(a[a > 0] / m[a > 0]))) / 2 for a in (p, q))
        assert drift(bins.tolist(), reference.tolist()) / 10000 == pytest.approx(real, abs=0.0015)
    assert drift([5, 0, 0, 0, 0, 0, 0, 0], [WHOLE, *[0] * 7]) == 0
    assert drift([0, 5, 0, 0, 0, 0, 0, 0], [WHOLE, *[0] * 7]) == 10000
    assert drift([0] * 8, [WHOLE, *[0] * 7]) == -1


def test_keys_have_the_order_of_the_numbers() -> None:
    floats = np.array([-np.inf, -3e38, -1, -1e-40, -0.0, 0.0, 1e-40, 1, 3e38, np.inf], np.float32)
    order = keys(floats)
    assert np.all(np.diff(order) > 0)
    assert [value_of(int(key), DType.FLOAT32) for key in order] == [float(x) for x in floats]


def test_every_element_has_its_turn() -> None:
    tensor = Tensor("x", (1, 96, 96, 3), DType.INT8, Quant.per_tensor(0.5, 3))
    values = _planned(tensor, macs=7_500_000)
    assert math.gcd(values.stride, values.elements) == 1
    assert 1500 < values.counted < 1900


def test_edges_split_the_reference_evenly() -> None:
    tensor = Tensor("x", (1, 100), DType.UINT8, Quant.per_tensor(0.5, 120))
    data = np.random.default_rng(2).normal(130, 15, 5000).clip(0, 255).astype(np.uint8)
    values = _planned(tensor, data)
    assert sum(values.reference) == WHOLE
    assert values.edges[0] == 1
    assert values.edges[-1] == 255
    assert all(abs(share / WHOLE - 1 / 6) < 0.04 for share in values.reference[1:-1])
    bins = np.searchsorted(values.edges, data, side="right")
    assert np.abs(np.bincount(bins, minlength=8) / 5000 - np.array(values.reference) / WHOLE).max() < 1e-4
    constant = _planned(tensor, np.full(10, 77, np.uint8))
    assert list(constant.edges) == sorted(set(constant.edges))


def _planned(tensor: Tensor, data: Array | None = None, macs: int = 10**9) -> Values:

    references = {} if data is None else {"x": of_stored([data], tensor)}
    return plan_watch(Graph("g", {"x": tensor}, (), ("x",), ()), references, macs).inputs[0]


def test_scores_and_logits(int8_digits: Path) -> None:
    """A softmax that became a table of integers is still one."""
    wake_word = FLOAT.parents[1] / "wake_word" / "model.onnx"
    (scores,) = compile_model(wake_word, Options(watch=True)).watch.outputs  # type: ignore[union-attr]
    (logits,) = compile_model(int8_digits, Options(watch=True)).watch.outputs  # type: ignore[union-attr]
    assert isinstance(scores, Classes)
    assert isinstance(logits, Classes)
    assert not scores.logits
    assert logits.logits


def test_references_travel_as_text() -> None:
    made = {"x": counted(np.random.default_rng(1).normal(0, 1, 999), Grid(0.03, -5))}
    assert from_text(to_text(made)) == made


def test_transitions_are_halved_before_they_overflow() -> None:
    counter = Counter("m", "0" * 64, WatchPlan((), (Classes("y", DType.INT8, 2),)))
    for i in range(600):
        counter.add({}, {"y": np.array([[i % 2, 1 - i % 2]], np.int8)})
    decided = figures(counter.report()).decided
    assert decided is not None
    assert decided.switches == 599
    assert decided.decisions == (300, 300)
    assert all(100 < count < 256 for row in decided.transitions for count in row if count)


def test_cbor_goes_both_ways() -> None:
    value = {"a": [0, 23, 24, 255, 256, 65536, 1 << 40, -1, -500], "b": b"xyz", "c": {"d": "text"}}
    assert cbor.decode(cbor.encode(value)) == value
    for broken in (b"", b"\x81", b"\x1c", b"\x62a", b"\xa1\x80\x00", b"\x00\x00", b"\x81" * 20, b"\xf6"):
        with pytest.raises(ToolError, match="not the counters"):
            cbor.decode(broken)
    with pytest.raises(ToolError, match="not the counters"):
        of_cbor(cbor.encode({"name": "kws"}))
    with pytest.raises(ToolError, match="not the counters"):
        figures([])
