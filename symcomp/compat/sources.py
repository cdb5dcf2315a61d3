"""What stands behind the names of Theano's modules: the namespaces in which they are looked up."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import symcomp.compile as compiling
import symcomp.errors as errors
import symcomp.gradient as gradient
import symcomp.ifelse as ifelse
import symcomp.printing as printing
import symcomp.scan_module as scan_module
import symcomp.tensor as symcomp_tensor
import symcomp.typed_list as typed_list
from symcomp.autodiff.lop import Lop, grad, subgraph_grad
from symcomp.autodiff.rop import Rop
from symcomp.compat import config as options
from symcomp.compat import files, graph, language, op, testing
from symcomp.compat import tensor as differing
from symcomp.compat.op_classes import OP_CLASSES
from symcomp.compat.raw_random import RAW_RANDOM
from symcomp.compile import dump, io, mode
from symcomp.compile.shared import TensorSharedVariable
from symcomp.core import dtype as dtypes
from symcomp.core import node, special_types, tensor, walk
from symcomp.core.graph import FunctionGraph
from symcomp.ops.control import Assert
from symcomp.ops.elemwise import Elemwise
from symcomp.ops.python_op import as_op
from symcomp.sandbox import rng_mrg
from symcomp.tensor import (
    fft,
    inplace,
    later,
    nlinalg,
    nnet,
    shared_randomstreams,
    signal,
    slinalg,
)

Namespace = Mapping[str, Any]
VERSION = "1.0.5"


def names_of(module: ModuleType) -> dict[str, Any]:
    """What a module has, also what it loads when asked, but for modules and what is private."""
    names = dict.fromkeys([*vars(module), *getattr(module, "__all__", ())])
    found = {name: getattr(module, name) for name in names if not name.startswith("_")}
    return {name: value for name, value in found.items() if not isinstance(value, ModuleType)}


def _asarray(a: Any, dtype: Any, order: Any = None) -> np.ndarray:
    """An array of exactly this dtype."""
    return np.asarray(a, dtype=np.dtype(dtype), order=order)


def sparse_grad(var: Any) -> Any:
    """The variable itself: a step along its gradient changes only the rows taken, in any case."""
    return var


def param(
    variable: Any,
    default: Any = None,
    name: str | None = None,
    mutable: bool = False,
    strict: bool = False,
    allow_downcast: bool | None = None,
    implicit: bool | None = None,
    borrow: bool | None = None,
) -> io.In:
    """``theano.Param``, which ``In`` was called before, and ``value`` was ``default``."""
    return io.In(
        variable, name, default, mutable=mutable, strict=strict, allow_downcast=allow_downcast,
        implicit=implicit, borrow=borrow,
    )  # fmt: skip


def psd(var: Any) -> Any:
    """The variable itself: that it is positive semidefinite is a hint to Theano's rewriting."""
    return var


def hashtype(thing: Any) -> int:
    """A hash of what class something is of, as ops without ``__props__`` have."""
    kind = type(thing)
    return hash((kind.__module__, kind.__name__))


def _never(*args: Any, **kwargs: Any) -> bool:
    """Whether there is a GPU: no."""
    return False


def _no_contexts() -> list[str]:
    """The names of the GPUs in use: none."""
    return []


CORE: Namespace = {
    "Apply": node.Apply,
    "Constant": node.Constant,
    "Type": node.Type,
    "Variable": node.Variable,
    "DisconnectedType": special_types.DisconnectedType,
    "disconnected_type": special_types.DisconnectedType(),
    "FunctionGraph": FunctionGraph,
    "Generic": special_types.GenericType,
    "generic": special_types.generic,
    "hashtype": hashtype,
    "MethodNotDefined": op.MethodNotDefined,
    "MissingInputError": errors.MissingInputError,
    "null_type": special_types.NullType(""),
    "NullType": special_types.NullType,
    "Op": op.Op,
    "PureOp": op.Op,
    "scratchpad": SimpleNamespace,
}
MODES = {name: mode.get_mode(name) for name in ("FAST_RUN", "FAST_COMPILE")}
COMPILE: Namespace = {
    **MODES,
    **names_of(compiling),
    "as_op": as_op,
    "function_dump": dump.function_dump,
    "Param": param,
    "pfunc": compiling.function,
    "predefined_linkers": dict.fromkeys(mode.LINKERS),
    "predefined_modes": MODES,
    "predefined_optimizers": dict.fromkeys(mode.OPTIMIZERS),
    "Rebroadcast": differing.Rebroadcast,
    "SymbolicInput": io.In,
    "SymbolicOutput": io.Out,
    "TensorSharedVariable": TensorSharedVariable,
    "UnusedInputError": errors.UnusedInputError,
    "view_op": op.view_op,
    "ViewOp": op.ViewOp,
}
TENSOR: Namespace = {
    **names_of(symcomp_tensor),
    **names_of(later),
    "grad": grad,
    "Rebroadcast": differing.Rebroadcast,
    "tensor": differing.tensor,
    "TensorType": differing.TensorType,
    "TensorVariable": differing.PlainTensorVariable,
    "verify_grad": differing.verify_grad,
    **differing.DTYPES,
    **differing.CONSTRUCTORS_OF_SEVERAL,
}
NNET: Namespace = {
    **names_of(nnet),
    "logsoftmax": differing.logsoftmax,
    "logsoftmax_op": differing.logsoftmax,
    "softmax": differing.softmax,
    "softmax_op": differing.softmax,
}
# The scalar functions, as T.Elemwise(theano.scalar.add) takes them.
SCALAR: Namespace = {
    **{
        name: function.op.scalar
        for name, function in names_of(symcomp_tensor).items()
        if isinstance(getattr(function, "op", None), Elemwise)
    },
    **differing.DTYPES,
    "upcast": dtypes.upcast,
}
GRAPHS = names_of(graph)
SCAN = {**names_of(scan_module), "clone": walk.clone_replace}
TOP: Namespace = {
    "clone": walk.clone_replace,
    "dot": symcomp_tensor.dot,
    "get_scalar_constant_value": symcomp_tensor.get_scalar_constant_value,
    "grad": grad,
    "Lop": Lop,
    "Rop": Rop,
    "sparse_grad": sparse_grad,
    "subgraph_grad": subgraph_grad,
    **{n: v for n, v in names_of(printing).items() if n in ("pp", "pprint")},
}

#: Names that differ from those below, and names that Theano's tables do not list.
OWN: dict[str, Namespace] = {
    "theano": {
        "__version__": VERSION,
        "_asarray": _asarray,
        "change_flags": options.change_flags,
        "config": options.config,
    },
    "theano.compat": language.COMPAT,
    "theano.compat.six": language.SIX,
    "theano.compat.six.moves": language.MOVES,
    "theano.compile.function": {"function": compiling.function},
    "theano.configparser": {
        "change_flags": options.change_flags,
        "config": options.config,
        "THEANO_FLAGS": os.environ.get("THEANO_FLAGS", ""),
        "TheanoConfigParser": options.TheanoConfig,
        **{n: v for n, v in names_of(options).items() if n.endswith(("Param", "EnumStr", "Var"))},
    },
    "theano.configdefaults": {
        "config": options.config,
        "local_bitwidth": lambda: 64,
        "python_int_bitwidth": lambda: 64,
    },
    "theano.gof.op": {
        "get_debug_values": graph.get_debug_values,
        "get_test_value": graph.get_test_value,
    },
    "theano.gpuarray": {"pygpu_activated": False},
    "theano.gpuarray.dnn": {"dnn_available": _never, "dnn_present": _never},
    "theano.gpuarray.type": {"list_contexts": _no_contexts},
    "theano.gradient": {
        "numeric_grad": gradient.NumericGradient,
        "verify_grad": differing.verify_grad,
    },
    "theano.misc.pkl_utils": names_of(files),
    "theano.misc.safe_asarray": {"_asarray": _asarray},
    "theano.sandbox.cuda": {"cuda_available": False, "cuda_enabled": False},
    "theano.sandbox.cuda.dnn": {"dnn_available": _never},
    "theano.sandbox.linalg": {"psd": psd},
    "theano.sandbox.linalg.ops": {"psd": psd},
    "theano.sandbox.softsign": {"softsign": nnet.softsign},
    "theano.tensor.opt": {"Assert": Assert},
    "theano.tensor": {"_shared": compiling.shared, **differing.CASTS},
    "theano.tensor.var": {"_tensor_py_operators": tensor.TensorVariable},
    "theano.tests.unittest_tools": {n: getattr(testing, n) for n in testing.__all__},
    "theano.version": {"full_version": VERSION, "short_version": VERSION, "version": VERSION},
}

#: What most of Theano's modules import.
EVERYWHERE: Namespace = {"config": options.config, "np": np, "numpy": np}

#: Where the names of a module, and of those inside it, are looked up, in this order.
SOURCES: dict[str, tuple[Namespace, ...]] = {
    "theano": (TOP, CORE, COMPILE, SCAN),
    "theano.compile": (COMPILE, CORE, OP_CLASSES, TENSOR),
    "theano.gof": (CORE, GRAPHS),
    "theano.gradient": (names_of(gradient), CORE),
    "theano.ifelse": (OP_CLASSES, names_of(ifelse)),
    "theano.printing": (names_of(printing),),
    "theano.sandbox.neighbours": (names_of(nnet),),
    "theano.sandbox.rng_mrg": (names_of(rng_mrg),),
    "theano.sandbox.linalg": (names_of(nlinalg), names_of(slinalg)),
    "theano.scalar": (SCALAR,),
    "theano.scan_module": (SCAN,),
    "theano.scan_module.scan_utils": (SCAN, GRAPHS),
    "theano.sparse": (),
    "theano.tensor": (OP_CLASSES, TENSOR, CORE),
    "theano.tensor.fft": (
        {"rfft": fft.rfft, "irfft": fft.irfft},
        {"DisconnectedType": special_types.DisconnectedType},
    ),
    "theano.tensor.inplace": (names_of(inplace),),
    "theano.tensor.nlinalg": (OP_CLASSES, {"norm": differing.norm}, names_of(nlinalg), TENSOR),
    "theano.tensor.nnet": (OP_CLASSES, NNET, TENSOR),
    "theano.tensor.nnet.abstract_conv": (OP_CLASSES, names_of(nnet.abstract_conv)),
    "theano.tensor.nnet.conv": ({"conv2d": differing.conv2d},),
    "theano.tensor.shared_randomstreams": (names_of(shared_randomstreams),),
    "theano.tensor.signal": (),
    "theano.tensor.signal.conv": (names_of(signal.conv),),
    "theano.tensor.signal.downsample": (names_of(signal.downsample),),
    "theano.tensor.signal.pool": (OP_CLASSES, names_of(signal.pool)),
    "theano.tensor.raw_random": (RAW_RANDOM,),
    "theano.tensor.sharedvar": (COMPILE, CORE, TENSOR),
    "theano.tensor.slinalg": (OP_CLASSES, names_of(slinalg), TENSOR),
    "theano.typed_list": (names_of(typed_list), CORE),
    "theano.updates": (SCAN,),
}
