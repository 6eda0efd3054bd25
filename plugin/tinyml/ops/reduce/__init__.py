"""Operators that combine elements along axes."""
