"""Fourier transforms and mel filter banks."""
