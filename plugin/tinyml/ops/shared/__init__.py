"""Helpers for operators of several families; nothing here registers an operator."""
