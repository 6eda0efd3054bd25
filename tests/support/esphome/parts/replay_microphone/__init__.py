# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""A microphone that replays a WAV file."""
