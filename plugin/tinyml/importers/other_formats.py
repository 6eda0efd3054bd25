# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Files of training frameworks: what they are, and the lines of Python that convert them."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

SHOWN = 200
"""Bytes of an unknown file that are looked at."""

OLD_TORCH = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
"""What torch.save() wrote first before PyTorch 1.6: a number, pickled."""

ONNX_BEGINS = re.compile(rb"\x08[\x01-\x20][\x12\x1a\x22\x3a\x42]")
"""The version of the format, then the producer, the graph, or what else exporters write next."""

NEITHER = ", neither ONNX nor TensorFlow Lite"
FRAMEWORKS = {".h5": "Keras", ".keras": "Keras", ".pt": "PyTorch", ".pth": "PyTorch", ".pt2": "PyTorch"}

AGAIN = "copy or export the model again"
ELSE = "give an ONNX (.onnx) or TensorFlow Lite (.tflite) file"

KERAS = """convert it in Python (docs/tutorial_keras.md makes it int8 at the same time):
    import tensorflow as tf
    model = tf.keras.models.load_model("{name}")
    open("{stem}.tflite", "wb").write(tf.lite.TFLiteConverter.from_keras_model(model).convert())"""
SAVED_MODEL = """convert it in Python:
    import tensorflow as tf
    converter = tf.lite.TFLiteConverter.from_saved_model("{name}")
    open("{stem}.tflite", "wb").write(converter.convert())"""
TORCH = """convert it in Python, with the shape of your inputs:
    import torch
    module = torch.load("{name}", weights_only=False).eval()
    torch.onnx.export(module, (torch.zeros(1, 3, 32, 32),), "{stem}.onnx")
  a file with weights alone needs its module: module.load_state_dict(torch.load("{name}"))"""
TORCH_SCRIPT = """convert it in Python, with the shape of your inputs:
    import torch
    module = torch.jit.load("{name}").eval()
    torch.onnx.export(module, (torch.zeros(1, 3, 32, 32),), "{stem}.onnx", dynamo=False)"""
TORCH_PROGRAM = """convert it in Python:
    import torch
    program = torch.export.load("{name}")
    torch.onnx.export(program, dynamo=True).save("{stem}.onnx")"""
PICKLE = """convert it in Python:
    import pickle, tinyml
    model = pickle.load(open("{name}", "rb"))
    tinyml.load(model).save("{stem}.onnx")"""
BOOSTED = """convert it in Python (docs/tutorial_scikit_learn.md):
    import onnxmltools, xgboost
    model = xgboost.Booster(model_file="{name}")
    onnxmltools.convert_xgboost(model, initial_types=[...])"""


def recognise(content: bytes, path: str) -> tuple[str, str]:
    """What a file is that is no model for us, and what to try."""
    name, stem = Path(path).name, Path(path).stem
    what, lines = _recognise(content)
    framework = FRAMEWORKS.get(Path(path).suffix.lower())
    if what.endswith(NEITHER) and framework:
        what = f"{what.removesuffix(NEITHER)}, which is no file of {framework} either"
    return what, lines.format(name=name, stem=stem) if lines else ELSE


def _recognise(content: bytes) -> tuple[str, str]:
    if not content:
        return "the file is empty", ""
    if content.startswith(b"version https://git-lfs"):
        return "it is a Git LFS pointer (run `git lfs pull`)", ""
    if content.startswith(b"PK\x03\x04"):
        return _archive(content)
    if content.startswith(b"\x89HDF"):
        return "it is an HDF5 file (Keras?)", KERAS
    if content.startswith(OLD_TORCH):
        return "it is a PyTorch file of the old format", TORCH
    if content[:1] == b"\x80" and content[1:2] in b"\x02\x03\x04\x05":
        return "it is a pickled Python object", PICKLE
    if content.startswith((b'{"learner"', b"{L\x00\x00\x00\x00\x00\x00\x00\x07learner", b"binf")):
        return "it is a model of XGBoost", BOOSTED
    if ONNX_BEGINS.match(content):
        return "it begins as ONNX does, but is cut off or damaged", AGAIN
    return f"{_first_bytes(content)}{NEITHER}", ""


def _first_bytes(content: bytes) -> str:
    """What a file of no known format has, for a person who knows where it came from."""
    if not content.strip(b"\0"):
        return f"it has {len(content):,} bytes, all zero"
    try:
        text = content[:SHOWN].decode("utf-8", "strict" if len(content) <= SHOWN else "ignore")
    except UnicodeDecodeError:
        text = "\0"
    if not all(letter.isprintable() or letter in "\r\n\t" for letter in text) or b"\0" in content[:SHOWN]:
        return f"it has {len(content):,} bytes that begin with {content[:8].hex(' ')}"
    if re.match(r"\s*<(!doctype\s+html|html|head)\b", text, re.IGNORECASE):
        return "it is a web page (a download that failed?)"
    begin = " ".join(text.split())[:40]
    return f"it is a text file that begins with {begin!r}"


def _archive(content: bytes) -> tuple[str, str]:
    """By the names of the members; nothing is unpacked."""
    try:
        members = zipfile.ZipFile(io.BytesIO(content)).namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return "it is a zip archive that cannot be read", ""
    inner = {name.partition("/")[2] for name in members}
    if "config.json" in members:
        return "it is a Keras file", KERAS
    if any(name.startswith("code/") for name in inner):
        return "it is a TorchScript file of PyTorch", TORCH_SCRIPT
    if "archive_format" in inner or "serialized_exported_program.json" in members:
        return "it is a program of torch.export", TORCH_PROGRAM
    if "data.pkl" in inner:
        return "it is a PyTorch file", TORCH
    return "it is a zip archive (a PyTorch or Keras file?)", ""
