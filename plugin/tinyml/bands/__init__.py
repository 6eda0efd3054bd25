"""Chains of layers computed a few rows at a time, where that lowers the peak of memory."""
