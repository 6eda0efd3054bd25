# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What commands and Python functions once said wrongly, or did not say, about unseen models."""

from __future__ import annotations

import contextlib
import inspect
import io
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import onnx
import pytest

import tinyml
from tests.first_sight import Case, Holds, Right
from tests.host import (
    test_api_mistakes,
    test_branching,
    test_features_commands,
    test_odd_settings,
    test_verify_limits,
)
from tests.support.onnx_models import model, node
from tinyml.api.quantized import quantize
from tinyml.pipeline import Options
from tinyml.verbs.cli import main

CANCELLING = np.random.default_rng(2).normal(0, 1, (64, 8)).astype(np.float32)


def cancelling() -> bytes:
    """Large sums that cancel: float32 loses most of its digits, in the reference too."""
    nodes = [node("MatMul", "x w", "h"), node("MatMul", "x v", "g"), node("Sub", "h g", "y")]
    return model(nodes, {"x": [1, 64]}, "y", w=CANCELLING, v=(CANCELLING * 1.003).astype(np.float32))


def the_plan_is_not_blamed(folder: Path) -> None:
    test_verify_limits.test_the_note_on_dense_layers_is_checked(folder)


def external_data(folder: Path) -> None:
    """torch writes model.onnx.data beside every model."""
    app, elsewhere = folder / "app", folder / "elsewhere"
    for made in (app, elsewhere):
        made.mkdir()
    (app / "CMakeLists.txt").write_text("find_package(Zephyr)\n")
    (app / "prj.conf").touch()
    loaded = onnx.load_from_string(cancelling())
    path = elsewhere / "model.onnx"
    onnx.save(loaded, path, save_as_external_data=True, location="model.onnx.data", size_threshold=0)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        status = main(["add", str(path), "--app", str(app)])
    assert status == 0, said.getvalue()
    for name in ("model.onnx", "model.onnx.data"):
        assert (app / "models" / name).read_bytes() == (elsewhere / name).read_bytes(), name


def poor_calibration(folder: Path) -> None:
    """One sample, and samples that are all zero."""
    path = folder / "m.onnx"
    path.write_bytes(cancelling())
    drawn = np.random.default_rng(1).normal(0, 1, (1, 64)).astype(np.float32)
    for samples, words in ((drawn, "only 1 calibration sample"), (np.zeros_like(drawn), "are equal")):
        advice = tinyml.quantize(path, samples).report.advice()
        assert any(words in line for line in advice), advice


def one_default_target(folder: Path) -> None:
    """Every function and command with a target has the same default."""
    functions = (tinyml.cost, tinyml.explore, tinyml.search)
    targets = {inspect.signature(function).parameters["target"].default for function in functions}
    targets |= {Options().target}
    assert len(targets) == 1, targets


def choices_have_types(folder: Path) -> None:
    """A misspelt choice is found by mypy, and by the function."""
    hints = get_type_hints(quantize)
    assert {"auto", "minmax", "entropy", "percentile"} <= set(get_args(hints["method"])), hints["method"]
    path = folder / "m.onnx"
    path.write_bytes(cancelling())
    with pytest.raises(tinyml.ConfigError, match="minmax"):
        tinyml.quantize(path, np.ones((4, 64), np.float32), method="mimmax")  # type: ignore[arg-type]


CASES: list[Case] = [
    Right("the_limit_follows_the_model", cancelling),
    Holds("a_cause_is_checked_before_it_is_named", the_plan_is_not_blamed),
    Holds(
        "the_front_end_of_the_training_survives_quantize",
        test_features_commands.test_quantizing_keeps_the_front_end_of_the_training,
    ),
    Holds("external_data_are_copied_by_add", external_data),
    Holds(
        "the_innermost_cause_of_a_failed_export",
        lambda folder: test_api_mistakes.test_the_innermost_cause_of_a_failed_export(),
    ),
    Holds(
        "loaders_are_data", lambda folder: test_api_mistakes.test_batches_are_data(test_api_mistakes.Loader)
    ),
    Holds("poor_calibration_is_named", poor_calibration),
    Holds("one_default_target", one_default_target),
    Holds("choices_have_types", choices_have_types),
    Holds("hints_name_parameters", lambda folder: test_api_mistakes.test_hints_name_parameters_not_options()),
    Holds("unknown_inputs", lambda folder: test_api_mistakes.test_arrays_have_the_names_of_inputs()),
    Holds(
        "labels_outside_the_classes",
        lambda folder: test_api_mistakes.test_labels_outside_the_classes_are_no_regression(),
    ),
    Holds("a_session_of_the_reference", lambda folder: test_api_mistakes.test_a_session_of_the_reference()),
    Holds("numbers_in_tinyml_yaml", lambda folder: test_odd_settings.test_numbers_are_written_as_numbers()),
    Holds(
        "an_arena_for_nested_concatenations",
        lambda folder: test_branching.test_an_operand_of_a_concatenation_inside_another(13),
    ),
]
