"""RNN, GRU, LSTM and SVDF."""
