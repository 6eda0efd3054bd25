"""Normalisation over axes, groups and neighbourhoods."""
