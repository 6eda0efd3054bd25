"""Samples in and out of .npz files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tinyml.errors import ConfigError
from tinyml.harness import arrays
from tinyml.harness.generated import Port
from tinyml.ir import Array

PORTS = (Port("audio/x:0", (1, 3), np.dtype("int8")), Port("file", (2,), np.dtype("float32")))
X = np.array([[1, -2, 3]], np.int8)
F = np.array([0.5, 1.5], np.float32)


@pytest.mark.parametrize(
    "given",
    [
        {"audio/x:0": X, "file": F},
        {"in0": X, "in1": F},
        {"in0": X, "file": F, "in0_s1": X, "out0": F},
        {"in0": X.reshape(3), "in1": F.reshape(1, 2)},
        {"in0": X.astype(np.int64), "in1": F.astype(np.float64)},
        {"in0": X[None], "in1": F[None]},
    ],
)
def test_one_sample(given: dict[str, Array]) -> None:
    (sample,) = arrays.to_samples(PORTS, given)
    for port, expected in zip(PORTS, (X, F), strict=True):
        np.testing.assert_array_equal(sample[port.name], expected)
        assert sample[port.name].dtype == port.dtype
        assert sample[port.name].shape == port.shape


def test_several_samples() -> None:
    samples = arrays.to_samples(PORTS, {"in0": np.stack([X, X + 1]), "in1": np.stack([F, F * 2])})
    np.testing.assert_array_equal(samples[1]["audio/x:0"], X + 1)
    np.testing.assert_array_equal(samples[1]["file"], F * 2)
    assert len(samples) == 2


@pytest.mark.parametrize(
    "given, words",
    [
        ({"in0": X}, r"no array for input 'file'(.|\n)*'in1'; there are: in0"),
        ({"in0": np.zeros((1, 4), np.int8), "in1": F}, r"shape \(1, 4\)(.|\n)*\(1, 3\)(.|\n)*\(N, 1, 3\)"),
        ({"in0": X.astype(np.float32), "in1": F}, r"given as float32(.|\n)*takes int8"),
        ({"in0": X.astype(np.int32) + 1000, "in1": F}, "given as int32"),
        ({"in0": np.array([["a", "b", "c"]]), "in1": F}, "given as <U1"),
        ({"in0": np.stack([X, X]), "in1": F}, "2 of 'audio/x:0', 1 of 'file'"),
    ],
)
def test_arrays_that_do_not_fit(given: dict[str, Array], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        arrays.to_samples(PORTS, given)


def test_outputs_go_by_both_names(tmp_path: Path) -> None:
    path = tmp_path / "y.npz"
    arrays.save(path, arrays.from_outputs(PORTS, [{"audio/x:0": X, "file": F}]))
    content = arrays.load(path)
    assert set(content) == {"audio/x:0", "out0", "file", "out1"}
    np.testing.assert_array_equal(content["audio/x:0"], X)
    np.testing.assert_array_equal(content["out1"], F)


def test_outputs_of_several_samples_are_stacked() -> None:
    out = arrays.from_outputs(PORTS, [{"audio/x:0": X, "file": F}, {"audio/x:0": X + 1, "file": F}])
    np.testing.assert_array_equal(out["out0"], np.stack([X, X + 1]))


def test_same_arrays_same_bytes(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        arrays.save(tmp_path / name, {"x": X})
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        arrays.load(tmp_path / "missing.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(ConfigError, match=r"cannot be read as \.npz"):
        arrays.load(tmp_path / "text.npz")
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(ConfigError, match="one array without a name"):
        arrays.load(tmp_path / "x.npy")


def test_example_is_the_published_pattern() -> None:
    """The input on which the figures of other engines were measured: ((31 i + 7) mod 256) - 128."""
    sample = arrays.example([Port("x", (2, 300), np.dtype("int8")), Port("b", (4,), np.dtype("bool"))])
    expected = [(31 * i + 7) % 256 - 128 for i in range(600)]
    assert sample["x"].reshape(-1).tolist() == expected
    assert sample["b"].tolist() == [True, False, True, False]
