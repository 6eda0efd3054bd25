# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Operators without a reader, and what a model does instead: for messages and for docs/SUPPORTED_OPS.md."""

from __future__ import annotations

RANDOM = "its results are random: choose outputs that do not need it (`outputs`), or make the noise an input"
TEXT = "it works on text: give the model numbers"
OPTIONAL = "optional values are not there in every run: export the model without them"
MAP = "it works on maps from names to numbers: give the model an array"
STABLEHLO = "convert the model without StableHLO operators, which is the converter's default"
TABLE = "it works on tables of text: look words up in the application, and give the model their numbers"
RNN = "convert Keras layers, which become loops or UNIDIRECTIONAL_SEQUENCE_LSTM"
RARE = "few models have it; you can add it as an operator of your own: docs/operators.md"

CALL = (
    "it calls a function of TensorFlow whose layers tf2onnx did not find, so the file lacks them, as with "
    "functions for XLA: export the model again with jit_compile=False, or without decorating that part as a "
    "tf.function"
)

ONNX: dict[str, str] = {
    **dict.fromkeys(("PartitionedCall", "StatefulPartitionedCall"), CALL),
    "com.microsoft::DynamicQuantizeLSTM": "onnxruntime's dynamic quantisation made it, with scales that it "
    "computes at run time: give the float model to `tinyml quantize` instead",
    **dict.fromkeys(("Multinomial", "RandomNormal", "RandomNormalLike"), RANDOM),
    **dict.fromkeys(("RandomUniform", "RandomUniformLike"), RANDOM),
    **dict.fromkeys(("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit"), TEXT),
    **dict.fromkeys(("Optional", "OptionalGetElement", "OptionalHasElement"), OPTIONAL),
    "ImageDecoder": "it decodes files: give the model the pixels",
    "ai.onnx.ml::CastMap": MAP,
    "ai.onnx.ml::DictVectorizer": MAP,
    "ai.onnx.ml::CategoryMapper": TEXT,
    "ai.onnx.ml::TreeEnsemble": "export with version 3 of ai.onnx.ml, whose TreeEnsembleClassifier and "
    "TreeEnsembleRegressor are supported",
}
"""Of ONNX's own operators, those that are neither read nor defined by ONNX as functions of others."""

TFLITE: dict[str, str] = {
    **dict.fromkeys(("MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM"), RANDOM),
    **dict.fromkeys(("HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE"), TABLE),
    **dict.fromkeys(("HASHTABLE_LOOKUP", "LSH_PROJECTION", "SKIP_GRAM"), TABLE),
    "LSTM": RNN,
    "FAKE_QUANT": "it is for training: convert the model, which makes integers of it",
}
"""Of TFLite's; StableHLO's have one answer for all, and rare ones too."""


def onnx_reason(domain: str, name: str) -> str:
    return ONNX.get(f"{domain}::{name}" if domain else name, "")


def tflite_reason(name: str) -> str:
    return STABLEHLO if name.startswith("STABLEHLO_") else TFLITE.get(name, "")
