# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""The generated C in a browser: WebAssembly, and one page around it."""
