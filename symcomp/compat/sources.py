"""The implementations of the names in Theano's modules: the namespaces in which they are looked up.
"""

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
import symcomp.sparse as symcomp_sparse
import symcomp.tensor as symcomp_tensor
import symcomp.typed_list as typed_list
from symcomp.autodiff.lop import Lop, grad, subgraph_grad
from symcomp.autodiff.rop import Rop
from symcomp.compat import config as options
from symcomp.compat import (
    conv_op,
    files,
    graph,
    language,
    op,
    optdb,
    overwriting,
    patterns,
    pfunc,
    plain,
    rewriting,
    sandbox_scan,
    test_values,
    testing,
)
from symcomp.compat import nnet as old_nnet
from symcomp.compat import tensor as differing
from symcomp.compat.blas import BLAS
from symcomp.compat.blocksparse import BLOCKSPARSE
from symcomp.compat.builders import OpFromGraph
from symcomp.compat.composite import Composite
from symcomp.compat.convolutions import ABSTRACT_CONV, conv3d_of_series
from symcomp.compat.devices import DEVICES
from symcomp.compat.map_variables import map_variables
from symcomp.compat.missing import Adapted
from symcomp.compat.modes import PREDEFINED, QUERIES, AnyMode, register_optimizer
from symcomp.compat.op_classes import OP_CLASSES
from symcomp.compat.op_functions import as_ops
from symcomp.compat.raw_random import RAW_RANDOM
from symcomp.compat.scalars import SCALAR_CLASSES, SCALARS, SIGMOIDS, ScalarFunction
from symcomp.compat.sparse import DRAWS, PRIVATE, SHARED, SPARSE
from symcomp.compat.symbolic_axis import SYMBOLIC_AXES
from symcomp.compile import debugmode, dump, io, mode
from symcomp.compile.shared import TensorSharedVariable
from symcomp.core import node, special_types, tensor, walk
from symcomp.ops.control import debugging
from symcomp.ops.control.conditions import Assert
from symcomp.ops.control.python_op import as_op
from symcomp.ops.elementwise.elemwise import Elemwise
from symcomp.sandbox import rng_mrg
from symcomp.tensor import fft, nlinalg, nnet, shared_randomstreams, signal, slinalg
from symcomp.vm.guard import InvalidValueError

Namespace = Mapping[str, Any]
VERSION = "1.0.5"


def names_of(module: ModuleType) -> dict[str, Any]:
    """Return the names of a module, including lazily loaded ones, without modules and private
    names.
    """
    names = dict.fromkeys([*vars(module), *getattr(module, "__all__", ())])
    found = {name: getattr(module, name) for name in names if not name.startswith("_")}
    return {name: value for name, value in found.items() if not isinstance(value, ModuleType)}


def _asarray(a: Any, dtype: Any, order: Any = None) -> np.ndarray:
    """Return an array of exactly this dtype."""
    return np.asarray(a, dtype=np.dtype(dtype), order=order)


def sparse_grad(var: Any) -> Any:
    """Return the variable itself: updates along its gradient always change only the rows taken."""
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
    """Call ``In`` under its former name ``theano.Param``, with ``default`` for ``value``."""
    return io.In(
        variable, name, default, mutable=mutable, strict=strict, allow_downcast=allow_downcast,
        implicit=implicit, borrow=borrow,
    )  # fmt: skip


def psd(var: Any) -> Any:
    """Return the variable itself: Theano's rewriting uses the hint that it is positive
    semidefinite.
    """
    return var


def hashtype(thing: Any) -> int:
    """Return a hash of the class of an object, as ops without ``__props__`` have."""
    kind = type(thing)
    return hash((kind.__module__, kind.__name__))


CORE: Namespace = {
    "Apply": node.Apply,
    "Constant": node.Constant,
    "Type": node.Type,
    "Variable": node.Variable,
    "DisconnectedType": special_types.DisconnectedType,
    "disconnected_type": special_types.DisconnectedType(),
    "FunctionGraph": rewriting.FunctionGraph,
    "Generic": special_types.GenericType,
    "generic": special_types.generic,
    "hashtype": hashtype,
    "MethodNotDefined": op.MethodNotDefined,
    "MissingInputError": errors.MissingInputError,
    "null_type": special_types.NullType(""),
    "object2": object,
    "NullType": special_types.NullType,
    "Op": op.Op,
    "PureOp": op.Op,
    "scratchpad": SimpleNamespace,
}
#: Classes and functions of rewriting defined here, and Theano's database of optimizers.
REWRITING: Namespace = {
    name: value
    for module in (rewriting, patterns, optdb)
    for name, value in names_of(module).items()
    if getattr(value, "__module__", "").startswith("symcomp.compat.") or name == "optdb"
} | rewriting.FEATURES
PROFILE_STATS = Adapted(
    "theano.compile.ProfileStats",
    compiling.ProfileStats,
    lambda atexit_print=True, **options: compiling.ProfileStats(options.get("message")),
)
STREAMS = Adapted(
    "theano.sandbox.rng_mrg.MRG_RandomStreams",
    rng_mrg.MRG_RandomStreams,
    lambda seed=12345, use_cuda=None: rng_mrg.MRG_RandomStreams(seed),
)
MODES = {name: mode.get_mode(name) for name in ("FAST_RUN", "FAST_COMPILE")}
COMPILE: Namespace = {
    **MODES,
    **QUERIES,
    **names_of(compiling),
    **{name: getattr(pfunc, name) for name in pfunc.__all__},
    "function": overwriting.function,
    "as_op": as_op,
    "Mode": AnyMode,
    "OpFromGraph": OpFromGraph,
    "optdb": optdb.optdb,
    "function_dump": dump.function_dump,
    "Param": param,
    "pfunc": language.with_first_named("params", overwriting.function),
    "ProfileStats": PROFILE_STATS,
    "predefined_linkers": dict.fromkeys(mode.LINKERS),
    "predefined_modes": MODES,
    "predefined_optimizers": PREDEFINED,
    "Rebroadcast": differing.Rebroadcast,
    "register_optimizer": register_optimizer,
    "SymbolicInput": io.In,
    "SymbolicOutput": io.Out,
    "TensorSharedVariable": TensorSharedVariable,
    "UnusedInputError": errors.UnusedInputError,
    "view_op": op.view_op,
    "ViewOp": op.ViewOp,
}
TENSOR: Namespace = {
    **as_ops(names_of(symcomp_tensor)),
    "as_tensor": differing.as_tensor,
    "as_tensor_variable": differing.as_tensor,
    "constant": differing.constant,
    "grad": grad,
    "pow": differing.power,
    "Rebroadcast": differing.Rebroadcast,
    "tensor": differing.tensor,
    "TensorType": differing.TensorType,
    "TensorVariable": differing.PlainTensorVariable,
    "verify_grad": differing.verify_grad,
    **differing.DTYPES,
    **differing.TYPES_OF_SCALARS,
    **differing.CONSTRUCTORS_OF_SEVERAL,
    **differing.ONLY_THEANOS,
    **SYMBOLIC_AXES,
}
NNET: Namespace = {
    **as_ops(names_of(nnet)),
    **{name: getattr(old_nnet, name) for name in old_nnet.__all__},
    "sigmoid_inplace": SIGMOIDS["sigmoid_inplace"],
}
# The scalar functions, in the form that T.Elemwise(theano.scalar.add) takes.
SCALAR: Namespace = {
    **{
        name: ScalarFunction(function)
        for name, function in names_of(symcomp_tensor).items()
        if isinstance(getattr(function, "op", None), Elemwise)
    },
    **differing.DTYPES,
    **SCALAR_CLASSES,
    **SCALARS,
    "Composite": Composite,
}
GRAPHS = names_of(graph)
# The ops that change lists; their constructors take an ``inplace`` flag, which does not matter.
LISTS: Namespace = {
    kind.__name__: Adapted(
        f"theano.typed_list.{kind.__name__}", kind, lambda inplace=False, kind=kind: kind()
    )
    for kind in (
        typed_list.Append, typed_list.Extend, typed_list.Insert, typed_list.Remove,
        typed_list.Reverse,
    )
}  # fmt: skip
SCAN = {
    **names_of(scan_module),
    "clone": walk.clone_replace,
    "map_variables": map_variables,
}
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

#: Functions that build inner graphs, and their replacements while test values are computed.
BUILDERS: dict[Any, Any] = {
    build: test_values.unheard(build)
    for build in (
        overwriting.function, differing.verify_grad, grad, gradient.hessian, gradient.jacobian, Lop,
        Rop, scan_module.foldl, scan_module.foldr, scan_module.map, scan_module.reduce,
        scan_module.scan_checkpoints, subgraph_grad, walk.clone_replace,
    )
} | {scan_module.scan: test_values.with_first_rows(scan_module.scan)}  # fmt: skip

#: Names with other implementations than below, and names that Theano's tables do not list.
OWN: dict[str, Namespace] = {
    **DEVICES,
    "theano": {
        "__version__": VERSION,
        "_asarray": _asarray,
        "change_flags": options.change_flags,
        "config": options.config,
    },
    "theano.compat": language.COMPAT,
    "theano.compat.python2x": language.PYTHON2X,
    "theano.compat.six": language.SIX,
    "theano.compat.six.moves": language.MOVES,
    "theano.compile.debugmode": {
        **names_of(debugmode),
        "default_make_thunk": [op.Op.make_thunk],
        "InvalidValueError": InvalidValueError,
    },
    "theano.compile.function": {"function": overwriting.function},
    "theano.configparser": {
        "_config_var_list": options.config._variables,
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
    "theano.gof.fg": {"OrderedSet": plain.OrderedSet},
    "theano.gof.graph": {
        "general_toposort": plain.general_toposort,
        "io_connection_pattern": plain.io_connection_pattern,
        "OrderedSet": plain.OrderedSet,
    },
    "theano.gof.python25": language.PYTHON2X,
    "theano.gof.utils": plain.UTILS,
    "theano.gof.op": {
        "get_debug_values": test_values.get_debug_values,
        "get_test_value": test_values.get_test_value,
    },
    "theano.gradient": {
        **{
            f"{name}_": getattr(gradient, name)
            for name in ("consider_constant", "disconnected_grad", "undefined_grad", "zero_grad")
        },
        "numeric_grad": gradient.NumericGradient,
        "verify_grad": differing.verify_grad,
    },
    "theano.misc.cpucount": {"cpuCount": plain.cpu_count},
    "theano.misc.may_share_memory": {"may_share_memory": np.may_share_memory},
    "theano.misc.ordered_set": {"OrderedSet": plain.OrderedSet},
    "theano.misc.pkl_utils": names_of(files),
    "theano.misc.safe_asarray": {"_asarray": _asarray},
    "theano.misc.windows": language.PROCESSES,
    "theano.printing": {"hex_digest": plain.hex_digest},
    "theano.raise_op": {"Raise": debugging.Raise},
    "theano.sandbox.linalg": {"psd": psd},
    "theano.sandbox.linalg.ops": {"psd": psd},
    "theano.sandbox.scan": {"scan": sandbox_scan.scan},
    "theano.sandbox.softsign": {"softsign": nnet.softsign},
    "theano.tensor.blas": BLAS,
    "theano.tensor.blas_c": BLAS,
    "theano.tensor.blas_scipy": BLAS,
    "theano.tensor.opt": {
        "Assert": Assert,
        "make_vector": differing.make_vector,
        **OP_CLASSES,
        **optdb.REGISTRARS,
        **REWRITING,
    },
    "theano.tensor.nnet.sigm": {
        **SIGMOIDS,
        "ultra_fast_sigmoid_inplace": overwriting.ultra_fast_sigmoid_inplace,
    },
    "theano.tensor.type": plain.VALUES_EQUAL,
    "theano.tensor.utils": {"shape_of_variables": graph.shape_of_variables},
    "theano.tensor": {
        "_allclose": plain.all_close,
        "_shared": compiling.shared,
        **differing.CASTS,
    },
    "theano.tensor.var": {"_tensor_py_operators": tensor.TensorVariable},
    "theano.tests.unittest_tools": {n: getattr(testing, n) for n in testing.__all__},
    "theano.sparse": PRIVATE,
    "theano.sparse.sandbox.sp2": DRAWS,
    "theano.version": {"full_version": VERSION, "short_version": VERSION, "version": VERSION},
}

#: Names that most of Theano's modules import.
EVERYWHERE: Namespace = {
    **CORE,
    "config": options.config,
    "grad_not_implemented": gradient.grad_not_implemented,
    "grad_undefined": gradient.grad_undefined,
    "np": np,
    "numpy": np,
    "SharedVariable": compiling.SharedVariable,
    "TensorType": differing.TensorType,
}

#: The namespaces in which the names of a module and of its submodules are looked up, in this order.
SOURCES: dict[str, tuple[Namespace, ...]] = {
    "theano": (TOP, CORE, COMPILE, SCAN),
    "theano.compile": (COMPILE, CORE, REWRITING, OP_CLASSES, TENSOR),
    "theano.gof": (CORE, REWRITING, GRAPHS),
    "theano.gradient": (names_of(gradient), CORE),
    "theano.ifelse": (OP_CLASSES, names_of(ifelse)),
    "theano.printing": (names_of(printing),),
    "theano.sandbox.neighbours": (names_of(nnet),),
    "theano.sandbox.rng_mrg": ({"MRG_RandomStreams": STREAMS}, names_of(rng_mrg)),
    "theano.sandbox.linalg": (names_of(nlinalg), names_of(slinalg)),
    "theano.scalar": (SCALAR,),
    "theano.scan_module": (SCAN,),
    "theano.scan_module.scan_utils": (SCAN, GRAPHS),
    "theano.sparse": (SPARSE, names_of(symcomp_sparse), CORE),
    "theano.sparse.sharedvar": (SHARED, names_of(symcomp_sparse), CORE),
    "theano.tensor": (OP_CLASSES, TENSOR, CORE),
    "theano.tensor.fft": (
        {"rfft": fft.rfft, "irfft": fft.irfft},
        {"DisconnectedType": special_types.DisconnectedType},
    ),
    "theano.tensor.inplace": (overwriting.INPLACE,),
    "theano.tensor.nlinalg": (OP_CLASSES, {"norm": differing.norm}, names_of(nlinalg), TENSOR),
    "theano.tensor.nnet": (OP_CLASSES, NNET, TENSOR),
    "theano.tensor.nnet.abstract_conv": (
        OP_CLASSES,
        ABSTRACT_CONV,
        names_of(nnet.abstract_conv),
    ),
    "theano.tensor.nnet.blocksparse": (OP_CLASSES, BLOCKSPARSE, TENSOR),
    "theano.tensor.nnet.conv": ({"conv2d": conv_op.conv2d}, OP_CLASSES),
    "theano.tensor.nnet.conv3d2d": ({"conv3d": conv3d_of_series},),
    "theano.tensor.nnet.ctc": (OP_CLASSES, old_nnet.CTC),
    "theano.tensor.shared_randomstreams": (names_of(shared_randomstreams),),
    "theano.tensor.signal": (),
    "theano.tensor.signal.conv": ({"conv2d": old_nnet.legacy_conv2d_of_planes},),
    "theano.tensor.signal.downsample": (OP_CLASSES, names_of(signal.downsample)),
    "theano.tensor.signal.pool": (OP_CLASSES, names_of(signal.pool)),
    "theano.tensor.raw_random": (RAW_RANDOM,),
    "theano.tensor.sharedvar": (COMPILE, CORE, TENSOR),
    "theano.tensor.slinalg": (OP_CLASSES, names_of(slinalg), TENSOR),
    "theano.typed_list": (LISTS, names_of(typed_list), CORE),
    "theano.updates": (SCAN,),
}
