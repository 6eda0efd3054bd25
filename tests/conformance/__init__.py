"""ONNX's own node tests, run through generated C."""
