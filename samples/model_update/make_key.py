# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Make an Ed25519 key for a build of this sample, as `imgtool keygen -t ed25519` does."""

from __future__ import annotations

import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

if __name__ == "__main__":
    key = Ed25519PrivateKey.generate()
    Path(sys.argv[1]).write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
