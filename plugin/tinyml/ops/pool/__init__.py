"""Pools: the largest, the mean or a norm of each window."""
