# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""Compiled templates, kept for the next process: compiling them was a tenth of the time of a command."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket

from tinyml.base.cache_folder import cache_folder
from tinyml.base.whole_files import write_whole

DIGEST = hashlib.sha256().digest_size


class KeptTemplates(jinja2.BytecodeCache):
    """Files are named by all that the compiled code depends on, so that none is ever out of date.

    A file begins with the hash of its rest: a damaged one is not read. Where nothing can be kept, each
    process compiles its templates.
    """

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """The name alone: templates of the same content need not be kept for each place they are in."""
        return name

    def load_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            content = self.file(bucket).read_bytes()
            digest, rest = content[:DIGEST], content[DIGEST:]
            if hashlib.sha256(rest).digest() == digest:
                bucket.bytecode_from_string(rest)

    def dump_bytecode(self, bucket: Bucket) -> None:
        content = bucket.bytecode_to_string()
        with contextlib.suppress(OSError):
            write_whole(self.file(bucket), hashlib.sha256(content).digest() + content)

    def file(self, bucket: Bucket) -> Path:
        on = bucket.environment
        spaces = (on.trim_blocks, on.lstrip_blocks, on.keep_trailing_newline)
        options = (on.autoescape, on.finalize is None, spaces)
        text = repr((jinja2.__version__, sys.version, options, bucket.key, bucket.checksum))
        return cache_folder() / "templates" / hashlib.sha256(text.encode()).hexdigest()
