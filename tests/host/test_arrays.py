# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Arrays in and out of .npz files."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tinyml.base.errors import ConfigError
from tinyml.datasets import arrays
from tinyml.datasets.model_inputs import load_samples
from tinyml.ir import Array, DType, Graph, Tensor

X = np.array([[1, -2, 3]], np.int8)
F = np.array([0.5, 1.5], np.float32)
GRAPH = Graph(
    "g",
    {"audio/x:0": Tensor("audio/x:0", (1, 3), DType.INT8), "file": Tensor("file", (2,), DType.FLOAT32)},
    (),
    ("audio/x:0", "file"),
    ("audio/x:0", "file"),
)


def saved(folder: Path, given: dict[str, Array]) -> Path:
    path = folder / "x.npz"
    np.savez(path, **given)  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize(
    "given",
    [
        {"audio/x:0": X, "in1": F},
        {"in0": X, "in1": F},
        {"in0": X, "in1": F, "in0_s1": X, "out0": F},
        {"in0": X.reshape(3), "in1": F.reshape(1, 2)},
        {"in0": X.astype(np.int64), "in1": F.astype(np.float64)},
    ],
)
def test_inputs(tmp_path: Path, given: dict[str, Array]) -> None:
    (loaded,) = load_samples(saved(tmp_path, given), GRAPH)
    for name, expected in (("audio/x:0", X), ("file", F)):
        np.testing.assert_array_equal(loaded[name], expected)
        assert loaded[name].dtype == expected.dtype
        assert loaded[name].shape == expected.shape


@pytest.mark.parametrize(
    "x, f",
    [
        (np.vstack([X, X + 1]), np.stack([F, F + 1])),
        (np.stack([X, X + 1]), np.concatenate([F, F + 1])),
    ],
)
def test_rows_are_consecutive_runs(tmp_path: Path, x: Array, f: Array) -> None:
    loaded = load_samples(saved(tmp_path, {"in0": x, "in1": f}), GRAPH)
    assert [list(sample) for sample in loaded] == [list(GRAPH.inputs)] * 2
    for row, sample in enumerate(loaded):
        np.testing.assert_array_equal(sample["audio/x:0"], X + row)
        np.testing.assert_array_equal(sample["file"], F + row)


@pytest.mark.parametrize(
    "given, words",
    [
        (
            {"in0": np.zeros((1, 6), np.int8), "in1": F},
            r"shape 1x6; the model takes 1x3(.|\n)*shape Nx3",
        ),
        ({"in0": np.zeros((0, 3), np.int8), "in1": F}, "has no samples for 'audio/x:0'"),
        (
            {"in0": np.vstack([X, X]), "in1": F},
            r"different numbers of samples for the inputs \(audio/x:0: 2, file: 1\)",
        ),
        ({"in0": X}, r"no array for the input 'file' \(it has in0\)(.|\n)*in1"),
        ({"in0": np.zeros((1, 4), np.int8), "in1": F}, "shape 1x4; the model takes 1x3"),
        ({"in0": X + np.float32(0.5), "in1": F}, r"does not fit int8 \(-1.5..3.5, float32\)"),
        ({"in0": X.astype(np.int32) + 1000, "in1": F}, r"does not fit int8 \(998..1003, int32\)"),
        ({"in0": X, "in1": F.astype(np.float64) + 1e300}, "has values beyond float32"),
        ({"in0": np.array([["a", "b", "c"]]), "in1": F}, "is <U1; the model takes int8"),
    ],
)
def test_inputs_that_do_not_fit(tmp_path: Path, given: dict[str, Array], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_samples(saved(tmp_path, given), GRAPH)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 and then nothing"])
def test_files_that_are_not_npz(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "text.npz"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"text\.npz is not a \.npz or \.npy file"):
        load_samples(path, GRAPH)


def test_members_that_are_no_arrays_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "samples.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("in0.npy", b"not what numpy writes")
    with pytest.raises(ConfigError, match=r"has no array for the input 'audio/x:0' \(it has nothing\)"):
        load_samples(path, GRAPH)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no input file"):
        load_samples(tmp_path / "missing.npz", GRAPH)


def test_array_without_a_name_is_that_of_the_only_input(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.stack([X, X + 1]))
    with pytest.raises(ConfigError, match="holds one array, and the model has 2 inputs"):
        load_samples(tmp_path / "x.npy", GRAPH)
    alone = replace(GRAPH, inputs=GRAPH.inputs[:1])
    first, second = load_samples(tmp_path / "x.npy", alone)
    np.testing.assert_array_equal(first["audio/x:0"], X)
    np.testing.assert_array_equal(second["audio/x:0"], X + 1)


def test_outputs_go_by_both_names(tmp_path: Path) -> None:
    path = tmp_path / "y.npz"
    arrays.save_outputs(path, GRAPH, [{"audio/x:0": X, "file": F}])
    with np.load(path) as content:
        assert set(content.files) == {"audio/x:0", "out0", "file", "out1"}
        np.testing.assert_array_equal(content["audio/x:0"], X)
        np.testing.assert_array_equal(content["out1"], F)


def test_outputs_of_several_runs_are_rows(tmp_path: Path) -> None:
    path = tmp_path / "y.npz"
    arrays.save_outputs(path, GRAPH, [{"audio/x:0": X, "file": F}, {"audio/x:0": X + 1, "file": F + 1}])
    with np.load(path) as content:
        np.testing.assert_array_equal(content["out0"], np.vstack([X, X + 1]))
        np.testing.assert_array_equal(content["file"], np.stack([F, F + 1]))


def test_outputs_nowhere_to_go(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write"):
        arrays.save_outputs(tmp_path / "no" / "y.npz", GRAPH, [{"audio/x:0": X, "file": F}])


def test_pattern_is_the_published_one() -> None:
    """The input on which the figures of other engines were measured: ((31 i + 7) mod 256) - 128."""
    sample = arrays.pattern(Tensor("x", (2, 300), DType.INT8))
    assert sample.reshape(-1).tolist() == [(31 * i + 7) % 256 - 128 for i in range(600)]


def test_the_only_array_may_have_any_name(tmp_path: Path) -> None:
    """As for `evaluate` and `quantize`."""
    alone = replace(GRAPH, inputs=GRAPH.inputs[:1])
    (loaded,) = load_samples(saved(tmp_path, {"foo": X}), alone)
    np.testing.assert_array_equal(loaded["audio/x:0"], X)


def test_text_is_read_as_by_the_other_commands(tmp_path: Path) -> None:
    alone = replace(GRAPH, inputs=GRAPH.inputs[:1])
    (tmp_path / "x.csv").write_text("1,-2,3\n2,-1,4\n")
    first, second = load_samples(tmp_path / "x.csv", alone)
    np.testing.assert_array_equal(first["audio/x:0"], X)
    np.testing.assert_array_equal(second["audio/x:0"], X + 1)


def test_numbers_of_a_run_are_taken_as_they_are(tmp_path: Path) -> None:
    """Integers are real numbers, and infinite ones are what somebody wants to try."""
    alone = replace(GRAPH, inputs=GRAPH.inputs[1:])
    (loaded,) = load_samples(saved(tmp_path, {"in0": np.array([3, -4])}), alone)
    np.testing.assert_array_equal(loaded["file"], np.array([3, -4], np.float32))
    (loaded,) = load_samples(saved(tmp_path, {"in0": np.array([np.inf, np.nan])}), alone)
    assert loaded["file"].dtype == np.float32
    assert np.isposinf(loaded["file"][0])
    assert np.isnan(loaded["file"][1])


def test_axes_in_another_order_are_refused(tmp_path: Path) -> None:
    tensor = Tensor("x", (1, 2, 3, 4), DType.FLOAT32)
    graph = Graph("g", {"x": tensor}, (), ("x",), ("x",))
    with pytest.raises(ConfigError, match=r"transpose\(0, 2, 3, 1\)"):
        load_samples(saved(tmp_path, {"x": np.zeros((5, 4, 2, 3), np.float32)}), graph)
