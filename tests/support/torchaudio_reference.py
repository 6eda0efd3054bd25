# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""MFCC by torchaudio, and how they were recorded: torch is too large a package to test with.

``python -m tests.support.torchaudio_reference``, in an environment with torchaudio, writes
tests/features/torchaudio.npz: features of the speech in micro.npz, by the name of the settings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parents[1] / "features"
RECORDED = FOLDER / "torchaudio.npz"

SETTINGS: dict[str, dict[str, Any]] = {
    "decibels": {"fft": 400, "step_samples": 200, "mels": 23, "coefficients": 13},
    "natural": {"fft": 480, "step_samples": 320, "mels": 40, "coefficients": 13, "log": "natural"},
    "mel_spectrum": {"fft": 512, "step_samples": 256, "mels": 32, "coefficients": 0, "upper_hz": 7000},
}
"""Of the front end `mfcc`, with style: torchaudio."""


def record(samples: Any, fft: int, step_samples: int, mels: int, coefficients: int, **more: Any) -> Any:
    """Rows of features, as torchaudio's transforms give them for a stream: no padding, no top_db."""
    import torch
    import torchaudio

    spectrum = {"n_fft": fft, "hop_length": step_samples, "n_mels": mels, "center": False}
    spectrum |= {"f_max": more["upper_hz"]} if "upper_hz" in more else {}
    decibels = torchaudio.transforms.AmplitudeToDB("power", top_db=None)
    if coefficients:
        natural = more.get("log") == "natural"
        transform = torchaudio.transforms.MFCC(16000, coefficients, log_mels=natural, melkwargs=spectrum)
        transform.amplitude_to_DB = decibels
    else:
        mel = torchaudio.transforms.MelSpectrogram(16000, **spectrum)
        transform = torch.nn.Sequential(mel, decibels)
    return transform.double()(torch.from_numpy(samples / 32768.0)).numpy().T


def main() -> None:
    with np.load(FOLDER / "micro.npz") as file:
        speech = file["speech"].astype(np.float64)
    rows = {name: record(speech, **chosen).astype(np.float32) for name, chosen in SETTINGS.items()}
    np.savez_compressed(RECORDED, **rows)


if __name__ == "__main__":
    main()
