"""``theano.tensor.nnet.blocksparse``: products with blocks of a matrix selected by indices."""

from __future__ import annotations

from typing import Any

import symcomp.tensor as T


def sparse_block_gemv(o: Any, W: Any, h: Any, inputIdx: Any, outputIdx: Any) -> Any:
    """Return ``o`` plus products of pieces of ``h`` and blocks of ``W``.

    o[b, j] += sum over i of h[b, i] W[inputIdx[b, i], outputIdx[b, j]]

    Parameters
    ----------
    o : tensor (batch, outputs, elements)
    W : tensor (input blocks, output blocks, elements, elements)
    h : tensor (batch, inputs, elements)
    inputIdx, outputIdx : integer matrix (batch, inputs), (batch, outputs)
    """
    o, W, h, rows, columns = map(T.as_tensor_variable, (o, W, h, inputIdx, outputIdx))
    blocks = W[rows.dimshuffle(0, 1, "x"), columns.dimshuffle(0, "x", 1)]
    n, many = rows.shape
    matrices = blocks.dimshuffle(0, 1, 3, 2, 4).reshape(
        (n, many * W.shape[2], columns.shape[1] * W.shape[3])
    )
    products = T.batched_dot(h.reshape((n, 1, many * W.shape[2])), matrices)
    return o + products.reshape((n, columns.shape[1], W.shape[3]))


def sparse_block_outer(o: Any, x: Any, y: Any, xIdx: Any, yIdx: Any, alpha: Any = None) -> Any:
    """Return ``o`` plus outer products in its blocks: o[xIdx[b, i], yIdx[b, j]] += alpha x[b, i]
    y[b, j].
    """
    o, x, y, rows, columns = map(T.as_tensor_variable, (o, x, y, xIdx, yIdx))
    products = x.dimshuffle(0, 1, "x", 2, "x") * y.dimshuffle(0, "x", 1, "x", 2)
    products = products if alpha is None else alpha * products
    return T.inc_subtensor(o[rows.dimshuffle(0, 1, "x"), columns.dimshuffle(0, "x", 1)], products)


def sparse_block_dot(W: Any, h: Any, inputIdx: Any, b: Any, outputIdx: Any) -> Any:
    """Return the biases of output blocks plus the products of ``sparse_block_gemv``; matrices ``h``
    and vectors of indices stand for one sample.
    """
    h, rows, columns = map(T.as_tensor_variable, (h, inputIdx, outputIdx))
    one = h.ndim == 2
    if one:
        h, rows, columns = (T.shape_padleft(v) for v in (h, rows, columns))
    z = sparse_block_gemv(T.as_tensor_variable(b)[columns], W, h, rows, columns)
    return z[0] if one else z


BLOCKSPARSE = {
    "sparse_block_dot": sparse_block_dot,
    "sparse_block_gemv": sparse_block_gemv,
    "sparse_block_gemv_inplace": sparse_block_gemv,
    "sparse_block_outer": sparse_block_outer,
    "sparse_block_outer_inplace": sparse_block_outer,
}
