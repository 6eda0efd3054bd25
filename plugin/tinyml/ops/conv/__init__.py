"""Convolutions: plain, depthwise, transposed and deformable."""
