# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What ``tinyml quantize --report`` wrote, in a report of the model that it made."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tinyml.base.errors import ConfigError
from tinyml.quantize.report import Report as QuantizeReport
from tinyml.report.facts import Report


def with_noise(report: Report, path: Path) -> Report:
    """The report with the signal-to-noise ratio of each layer, and that of the outputs."""
    try:
        loss = QuantizeReport.from_json(json.loads(path.read_text(encoding="utf-8")))
        noise = {layer.name: layer.decibels for layer in loss.computing()}
        headline = f"Quantised: {loss.headline()}"
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(
            f"{path} is not the report of a quantisation",
            "tinyml quantize MODEL --calibration DATA -o OUT --report FILE",
        ) from None
    layers = [replace(layer, snr_db=noise.get(layer.name)) for layer in report.layers]
    if all(layer.snr_db is None for layer in layers):
        raise ConfigError(
            f"{path} has none of the layers of {report.model}",
            "give the report of the quantisation that made this model",
        )
    return replace(report, layers=layers, accuracy=[*report.accuracy, headline])
