# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What ``tinyml evaluate --json`` wrote, in lines for a report."""

from __future__ import annotations

import json
from pathlib import Path

from tinyml.base.errors import ConfigError


def lines(path: Path) -> list[str]:
    """The figures of an evaluation, one per line."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        scores, errors, original = data["classification"], data["regression"], data["original"]
        found = []
        if scores:
            found.append(
                f"Accuracy {scores['accuracy']:.2%} on {data['samples']:,} samples, {data['machine']}"
            )
        if errors:
            found.append(f"Mean absolute error {errors['mae']:.6g} on {data['samples']:,} samples")
        if original:
            if original["accuracy"] is not None:
                found.append(
                    f"Accuracy of {original['model']} in {original['runtime']}: {original['accuracy']:.2%}"
                )
            found += [
                f"Output {output['output']}: {output['snr_db']:.1f} dB against {original['model']}"
                for output in original["outputs"]
            ]
        return found
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise ConfigError(
            f"{path} is not an evaluation", "tinyml evaluate MODEL --data DATA --json FILE"
        ) from None
