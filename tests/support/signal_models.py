# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""TFLite files with TensorFlow Lite Micro's signal operators, up to a whole audio preprocessor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from flatbuffers import flexbuffers

from tests.support.tflite_writer import Call, Part, Value, write
from tinyml.features.micro import tables
from tinyml.features.micro.micro_settings import MicroSettings
from tinyml.ir import Array
from tinyml.ops.signal.band_arithmetic import PCAN_SIGNAL_BITS


def signal_call(name: str, inputs: Sequence[str], outputs: Sequence[str], options: Mapping[str, int]) -> Call:
    """A custom operator with options as the converter writes them."""
    return Call("CUSTOM", inputs, outputs, custom=f"Signal{name}", custom_options=flexible(options))


def flexible(options: Mapping[str, int]) -> bytes:
    return bytes(flexbuffers.Dumps(dict(options)))


@dataclass
class Chain:
    """Operators one after the other; values are known by their names."""

    values: list[Value] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def constant(self, name: str, data: Array) -> str:
        self.values.append(Value.constant(name, data))
        return name

    def value(self, name: str, shape: tuple[int, ...], dtype: str) -> str:
        self.values.append(Value(name, shape, dtype))
        return name

    def signal(self, name: str, inputs: Sequence[str], outputs: Sequence[str], **options: int) -> None:
        self.calls.append(signal_call(name, inputs, outputs, options))

    def file(self, inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
        return write(Part(self.values, self.calls, inputs, outputs))


def one_call(
    name: str,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    options: Mapping[str, int] | bytes,
    operands: Sequence[str] = (),
) -> bytes:
    """A file with one operator; ``operands`` are all inputs unless given."""
    raw = options if isinstance(options, bytes) else flexible(options)
    given, results = list(operands) or [v.name for v in inputs], [v.name for v in outputs]
    call = Call("CUSTOM", given, results, custom=f"Signal{name}", custom_options=raw)
    return write(Part([*inputs, *outputs], [call], [v.name for v in inputs if v.data is None], results))


def gain_table(settings: MicroSettings) -> Array:
    """The parabolas of the front end in the order of TensorFlow Lite Micro, three of four places used."""
    gains = tables.gains(settings)
    table = np.zeros(4 * 32 - 2, np.int16)
    table[:2] = gains[:2, 0]
    for bits in range(2, 33):
        table[4 * bits - 6 : 4 * bits - 3] = gains[bits]
    return table[:125]


def preprocessor(settings: MicroSettings) -> bytes:
    """A frame of int16 samples to a row of features, operator for operator what the front end does."""
    chain, bands, how = Chain(), tables.bands(settings), tables.smoothing(settings)
    bins, channels = settings.fft // 2 + 1, settings.channels
    starts = np.cumsum([0, *bands.widths[:-1]])
    frame = chain.value("frame", (1, settings.window), "int16")
    window = chain.constant("window", tables.window(settings))
    filters = [
        chain.constant("falling", bands.falling),
        chain.constant("rising", bands.rising),
        chain.constant("bins", (starts + bands.start).astype(np.int16)),
        chain.constant("weights", starts.astype(np.int16)),
        chain.constant("widths", bands.widths),
    ]
    chain.value("weighted", (1, settings.window), "int16")
    chain.value("flat", (settings.window,), "int16")
    chain.value("scaled", (settings.window,), "int16")
    chain.value("bits", (), "int32")
    chain.value("spectrum", (2 * bins,), "int16")
    chain.value("energy", (bins,), "uint32")
    chain.value("sums", (channels,), "uint64")
    for name in ("roots", "cleaned", "noise", "gained"):
        chain.value(name, (channels,), "uint32")
    chain.value("features", (channels,), "int16")
    chain.signal("Window", [frame, window], ["weighted"], shift=tables.WINDOW_BITS)
    chain.calls.append(
        Call("RESHAPE", ["weighted"], ["flat"], "ReshapeOptions", {"NewShape": [settings.window]})
    )
    chain.signal("FftAutoScale", ["flat"], ["scaled", "bits"])
    chain.signal("Rfft", ["scaled"], ["spectrum"], T=7, fft_length=settings.fft)
    chain.signal("Energy", ["spectrum"], ["energy"], start_index=bands.start, end_index=bands.end)
    chain.signal("FilterBank", ["energy", *filters], ["sums"], num_channels=channels)
    chain.signal("FilterBankSquareRoot", ["sums", "bits"], ["roots"])
    chain.signal(
        "FilterBankSpectralSubtraction",
        ["roots"],
        ["cleaned", "noise"],
        alternate_one_minus_smoothing=how.odd[1],
        alternate_smoothing=how.odd[0],
        clamping=False,
        min_signal_remaining=how.least,
        num_channels=channels,
        one_minus_smoothing=how.even[1],
        smoothing=how.even[0],
        smoothing_bits=how.noise_bits,
        spectral_subtraction_bits=how.bits,
    )
    gains = chain.constant("gains", gain_table(settings))
    shift = settings.pcan_bits - settings.correction_bits - PCAN_SIGNAL_BITS
    chain.signal("PCAN", ["cleaned", "noise", gains], ["gained"], snr_shift=shift)
    chain.signal(
        "FilterBankLog",
        ["gained"],
        ["features"],
        input_correction_bits=settings.correction_bits,
        output_scale=1 << settings.log_shift,
    )
    return chain.file([frame], ["features"])
