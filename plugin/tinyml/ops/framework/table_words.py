# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""What the numbers of a table mean, in the words of NAME_weights.h, for tables whose kernel says no more."""

from __future__ import annotations

import re

# By the last word of a table's name, which may carry a number.
HOLDS = {
    "axis": "for each index of the output along an axis, the index in the input",
    "bias": "a bias for each output channel; with zero points, what they add to every sum is included",
    "boundaries": "the boundaries between buckets, ascending",
    "columns": "for each column of the output, the two columns of the input beside it",
    "columns_by": "for each column of the output, the share of the second column",
    "commands": "the command stream of the NPU",
    "cos": "cosines for each frequency and sample",
    "cosines": "the cosine transform, a row for each coefficient",
    "counts": "how many entries belong to each row",
    "curve": "the logarithm between powers of two, in segments",
    "edges": "the first and the last bin of each band",
    "exp": "exponentials, interpolated over the whole range of int16",
    "exps": "the exponential of each distance to the largest element",
    "extents": "the extents of the tensor",
    "factors": "for each index of the output along an axis, the weights of the elements that it reads",
    "firsts": "the first bin of each band",
    "gains": "the gain control, in segments",
    "in": "a constant operand, as the model has it",
    "mean": "the mean that is subtracted from each feature",
    "multiplier": "for each output channel, the multiplier of its sums, in units of 2^-31",
    "nodes": "the nodes of all trees: feature, limit, distance to the other branch; or a leaf",
    "outputs": "the output that each n-gram counts for",
    "outside": "for each index of the output along an axis, whether it lies outside the input",
    "peephole": "the weights of the cell state",
    "places": "where each element is read, in the order of the calculation",
    "projection": "the weights of the projection",
    "projection_bias": "the bias of the projection",
    "r": "recurrent weights as int8, row by row",
    "r_scales": "the value of one step of the recurrent weights of each row",
    "radices": "the radices of the stages, then 0",
    "reciprocal": "reciprocals, interpolated over the whole range of int16",
    "recurrent": "recurrent weights, a row for each cell",
    "recurrent_bias": "what zero points add to the recurrent sums",
    "roots": "where each tree begins, or complex roots of unity",
    "rows": "for each row of the output, the two rows of the input beside it",
    "rows_by": "for each row of the output, the share of the second row",
    "runs": "neighbouring weights: the first input of each run, and its length",
    "scales": "for each output channel, the value of one step of its weights",
    "separation": "complex factors that separate the transforms of even and odd samples",
    "shares": "how much of each bin belongs to the band that ends there, and to the one that begins",
    "shift": "for each output channel, the shift of its products, to the right if it is negative",
    "sigmoid": "the sigmoid function, interpolated",
    "sin": "sines for each frequency and sample",
    "starts": "where the entries of each group begin, and the end of the last one",
    "statistics": "which statistics are computed",
    "std": "the standard deviation that each feature is divided by",
    "strides": "the strides of the tensor, in elements",
    "sums": "for each output channel, its bias and what zero points add to every sum",
    "table": "the output for each value of the input, as unsigned bits",
    "tables": "for each channel, the output for each value of the input, as unsigned bits",
    "targets": "the output to which each weight of a leaf is added",
    "tokens": "the tokens of all n-grams, one n-gram after the other",
    "turn": "complex factors between the stages, as pairs of int16",
    "twiddles": "complex factors between the stages",
    "w": "weights as int8, row by row",
    "w_scales": "the value of one step of the weights of each row",
    "weights": "the weights, in the order in which the kernel reads them",
    "widths": "how many bins each band has",
    "window": "the window function",
}
_ENDS = re.compile(rf"_({'|'.join(sorted(HOLDS, key=len, reverse=True))})\d*$")


def holds(table: str) -> str:
    """What a table of this name usually holds, or nothing."""
    match = _ENDS.search(table)
    return HOLDS[match[1]] if match else ""


def stream(filters: str, weights: str) -> str:
    """A stream of words, in which all that a few filters need comes together."""
    return (
        f"for {filters}: biases; {weights}; factors (multipliers times 2); exponents (shifts to the right, "
        "less 1), a byte each"
    )
