# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""MFCC by librosa, and how they were recorded: numba compiles parts of librosa for half a minute first.

``python -m tests.support.librosa_reference`` writes tests/recorded/librosa.npz: features of the speech in
tests/features/micro.npz, by the name of the settings. `make test` compares with the recorded ones, `make
test-deep` also with those of the librosa that is installed.
"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.micro_reference import RECORDED as SPEECH

RECORDED = Path(__file__).parents[1] / "recorded" / "librosa.npz"

SETTINGS: dict[str, dict[str, Any]] = {
    "usual": {},
    "torchaudio": {"style": "torchaudio", "fft": 400, "step_samples": 200, "mels": 23, "coefficients": 13},
    "short_window": {"window_samples": 400, "fft": 512, "lower_hz": 20, "upper_hz": 7600},
    "mel_spectrum": {"coefficients": 0, "mels": 64, "fft": 1024, "step_samples": 512},
    "natural": {"style": "torchaudio", "log": "natural", "fft": 480, "step_samples": 320, "shape": "hamming"},
    "slow": {"rate": 8000, "fft": 256, "step_samples": 80, "mels": 20, "coefficients": 20},
}
"""Of the front end `mfcc`."""

DEFAULTS: dict[str, Any] = {
    "rate": 16000,
    "fft": 512,
    "window_samples": 0,
    "step_samples": 160,
    "mels": 40,
    "coefficients": 13,
    "lower_hz": 0,
    "upper_hz": 0,
    "style": "librosa",
    "log": "db",
    "shape": "hann",
}
"""Written out, because librosa must not get them from the code under test."""


def compute(samples: Any, name: str) -> Any:
    """Rows of features. torchaudio has the filters of librosa with htk=True and norm=None."""
    import librosa

    chosen = {**DEFAULTS, **SETTINGS[name]}
    torchaudio = chosen["style"] == "torchaudio"
    power = librosa.feature.melspectrogram(
        y=samples.astype(np.float64) / 32768,
        sr=chosen["rate"],
        n_fft=chosen["fft"],
        hop_length=chosen["step_samples"],
        win_length=chosen["window_samples"] or None,
        window=chosen["shape"],
        center=False,
        n_mels=chosen["mels"],
        fmin=chosen["lower_hz"],
        fmax=chosen["upper_hz"] or None,
        htk=torchaudio,
        norm=None if torchaudio else "slaney",
        dtype=np.float64,
    )
    logs = librosa.power_to_db(power, top_db=None) if chosen["log"] == "db" else np.log(power + 1e-6)
    if not chosen["coefficients"]:
        return logs.T
    return librosa.feature.mfcc(S=logs, n_mfcc=chosen["coefficients"]).T


def main() -> None:
    version = importlib.metadata.version("librosa")
    with np.load(SPEECH) as file:
        speech = file["speech"]
    rows = {name: compute(speech, name).astype(np.float32) for name in SETTINGS}
    np.savez_compressed(RECORDED, version=np.array(version), **rows)
    print(f"{RECORDED}: {RECORDED.stat().st_size} bytes, librosa {version}")


if __name__ == "__main__":
    main()
