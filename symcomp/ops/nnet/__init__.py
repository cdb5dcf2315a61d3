"""Functions of neural networks: softmax, activations, losses, labels and normalization.

Logistic functions are scalar functions, in `ops/elementwise`; convolution and pooling stand in
`ops/windows`.
"""
