"""What all kernels with constant weights share: records, streams, multipliers, byte weights, int16."""
