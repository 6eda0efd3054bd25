"""Softmax and its relatives."""
