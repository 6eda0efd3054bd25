# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the keys of front ends mean, in a line each: editors show it. docs/features.md says more."""

from __future__ import annotations

HELP = {
    "rate": "samples per second",
    "window_ms": "length of a frame, in milliseconds",
    "step_ms": "from one frame to the next, in milliseconds (microWakeWord: 10)",
    "channels": "bands of the filter bank, which are the features of a row",
    "lower_hz": "lower end of the bands",
    "upper_hz": "upper end of the bands; 0 in mfcc: half the rate",
    "noise_bits": "fraction bits of the noise estimate",
    "even_smoothing": "share of a new frame in the noise estimate of even bands",
    "odd_smoothing": "share of a new frame in the noise estimate of odd bands",
    "min_signal": "least share of the signal that noise reduction keeps",
    "pcan": "gain control for each band",
    "pcan_strength": "exponent of the gain control",
    "pcan_offset": "offset of the gain control",
    "pcan_bits": "fraction bits of the gain control",
    "log": "logarithm of the bands; in mfcc: db (decibels) or natural",
    "log_shift": "the logarithm is multiplied by 2 to this power",
    "scale": "what one step of a feature is worth to a model in real numbers",
    "rounding": "of the filter weights: separate, as on x86_64; fused, as on aarch64 and ESP32-S3",
    "fft": "n_fft of librosa and torchaudio: an even number",
    "window_samples": "samples in a frame: an even number; 0 in mfcc: as many as fft",
    "step_samples": "samples from one frame to the next",
    "shape": "of the window: hann or hamming",
    "mels": "mel bands: n_mels",
    "style": "of the filters: librosa (Slaney's mel scale and norm) or torchaudio (HTK's, no norm)",
    "coefficients": "n_mfcc; 0: the row is the mel spectrum",
    "axes": "values in a sample",
    "statistics": "some of mean, rms, std, skewness, kurtosis, peak",
    "bands": "edges of the bands in Hz, as 0,50,100,200",
    "mean": "subtracted from the samples: one number for each axis, or one for all",
    "std": "by which samples are divided: one number for each axis, or one for all",
}
