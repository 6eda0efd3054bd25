# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""`tinyml evidence`: what is known about the models of an image, as one file that others can check."""

from tinyml.api.evidence.bundle import Bundle, differences, make, read_bundle
from tinyml.api.evidence.models import Source

__all__ = ["Bundle", "Source", "differences", "make", "read_bundle"]
