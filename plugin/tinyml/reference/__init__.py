# Copyright The west-tinyml contributors
# SPDX-License-Identifier: Apache-2.0
"""onnxruntime as a reference whose integers do not depend on the CPU. The one door is ``session.Session``.

Why it needs care. On x86 without VNNI, onnxruntime multiplies uint8 by int8 with VPMADDUBSW, which adds
pairs of products in int16 and saturates: 255 * 127 * 2 does not fit. A layer can then be wrong by any
amount. Layers with int8 activations suffer too when optimisations are on, because those make the
activations uint8. uint8 times uint8 takes another path, through VPMADDWD, and is exact on every CPU.
``session.x64quantprecision`` avoids the saturation too, but only for the patterns that extended
optimisations recognise, and with optimisations on, a graph is no longer computed node by node.

So every model is run from a copy, with graph optimisations off and on one thread:

- **Integer operators** (QLinearConv, QLinearMatMul, QGemm, MatMulInteger, ConvInteger, …): int8 operands
  become uint8, value and zero point moved by 128 (``unsigned.py``). The differences "value - zero point"
  are the same, so are the sums in int32. What follows is one float32 product and one rounding to even, both
  defined by IEEE 754. An int8 result is moved back, so that the tensors of the model keep their meaning.
- **QDQ models**: with optimisations off, DequantizeLinear → Conv → QuantizeLinear is a convolution of
  floats. It does not saturate, but the order of additions and fused multiply-adds differ from CPU to CPU,
  and now and then that moves a value across a half, to the next step. Where both operands of a Conv, MatMul
  or Gemm are dequantised 8-bit tensors, the copy adds up uint8 products in int32 and scales the sum, bias
  included, once, in float64 (``integers.py``). This is what the file says in real numbers, rounded only
  where the file rounds. ConvTranspose has no integer form: it runs on whole numbers in float32, if all sums
  stay below 2**24, where float32 is exact in any order.
- **STFT and DFT** of float32 run in float64 (``fourier.py``): in float32, lengths that are no power of two
  have errors of 4e-5 of the largest value, fifty times those of a plain sum.

What stays as it is: elementwise operators between Dequantize and Quantize (one IEEE operation each, the same
everywhere), and float32 sums and functions (means, sigmoids, float layers, int16 activations). Their last
bits may depend on the CPU; compare them with a tolerance, never for equality.
"""
