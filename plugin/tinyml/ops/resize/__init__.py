"""Operators that sample an image at other positions."""
