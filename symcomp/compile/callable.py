"""Function: the object that ``function`` returns."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symcomp.compile.c_function import CFunction, c_function
from symcomp.compile.container import Container
from symcomp.compile.maker import Input, Maker
from symcomp.compile.memory import drop_arenas, memory_report
from symcomp.compile.shared import SharedVariable
from symcomp.config import config
from symcomp.core.output import written
from symcomp.core.record import replace
from symcomp.core.spans import recorded
from symcomp.cvm.blas_threads import blas_limit, blas_threads_to_use
from symcomp.cvm.machine import Caller, Calls, can_flush_denormals
from symcomp.lazy import lazy_module
from symcomp.profiling.devices import Watch
from symcomp.profiling.profiled import Profiled
from symcomp.profiling.stats import ProfileStats
from symcomp.vm.memory import MemoryReport

devices = lazy_module("symcomp.gpu.driver.devices")


class Function(Caller):
    """A compiled function. Made by ``symcomp.function``.

    Call it with values for its inputs, by position or by name: it computes the outputs, then
    applies the updates. A call that fails leaves shared variables unchanged. It can be pickled and
    copied (with its shared variables), and called from several threads at once; of two concurrent
    updates, the one that ends last takes effect.

    A value that is missing, unknown or of the wrong type raises TypeError. With ``output_subset``,
    a list of numbers, or of keys of a dict of outputs, a call returns only these.

    Attributes
    ----------
    maker : Maker
        ``maker.fgraph`` is the rewritten graph.
    program : Program
        The compiled program; print it to read it.
    trust_input : bool
        Do not check arguments.
    repeated : int
        The number of calls that ran a kept plan.
    profile : ProfileStats or None
    profiled : Profiled or None
        Counts of this function.
    name : str
    """

    def __init__(self, maker: Maker, trust_input: bool = False) -> None:
        self.maker = maker
        self.name = maker.name
        watch = None if maker.profile is None else Watch()
        self.executable = maker.executable(watch)
        self.program, machine = self.executable.program, self.executable.machine
        self.profiled: Profiled | None = None
        calls: Calls | None = None
        if maker.profile is not None:
            calls = Calls()
            self.profiled = Profiled(maker.name, machine.new_tally(), calls, maker.other_programs)
            self.profiled.timeline = None if watch is None else watch.timeline
            maker.profile.watch(self.profiled)
        super().__init__(
            machine, maker.inputs, maker.updated, maker.n_outputs, maker.structure, trust_input,
            maker.profile, calls, blas_limit(blas_threads_to_use()), _flushes_denormals(),
        )  # fmt: skip
        self._explicit = [i for i, spec in enumerate(maker.inputs) if not spec.implicit]
        names = [maker.inputs[i].name for i in self._explicit]
        # A name of two inputs can only be passed by position.
        self._position = {
            name: i
            for name, i in zip(names, self._explicit, strict=True)
            if name and names.count(name) == 1
        }
        self._overwritten = [i for i, spec in enumerate(maker.inputs) if spec.mutable]
        self._given_away = frozenset(maker.given_away)
        self.fn = RawFunction(self)

    # -- calling: what ``Caller`` does not do itself
    # -------------------------------------------------------------------------------------

    def _complete(self, values: list[Any], n_given: int, kwargs: Mapping[str, Any]) -> None:
        """Combine the arguments given by position and by name."""
        if n_given > len(self._explicit):
            raise TypeError(f"{self._usage()}: got {n_given} positional arguments")
        given = set(self._explicit[:n_given])
        for name, value in kwargs.items():
            i = self._position.get(name, -1)
            if i < 0:
                raise TypeError(f"{self._usage()}: got the unknown argument {name!r}")
            if i in given:
                raise TypeError(f"{self._usage()}: {name!r} is given by position and by name")
            values[i] = value if self.trust_input else self._check(i, value)
            given.add(i)
        if len(given) < len(self._explicit):
            self._check_missing(given)

    def _check(self, i: int, value: Any) -> Any:
        spec = self.maker.inputs[i]
        try:
            return spec.type.filter(value, spec.strict, spec.allow_downcast)
        except (TypeError, ValueError) as problem:
            place = self._explicit.index(i)
            raise type(problem)(
                f"{self.name}: argument {place} ({spec.name or 'unnamed'}, {spec.type}): {problem}"
            ) from None

    def _check_missing(self, given: set[int]) -> None:
        missing = [
            i
            for i in self._explicit
            if i not in given and self.maker.inputs[i].container.value is None
        ]
        if missing:
            names = ", ".join(
                f"{self._explicit.index(i)} ({self.maker.inputs[i].name or 'unnamed'}, "
                f"{self.maker.inputs[i].type})"
                for i in missing
            )
            raise TypeError(f"{self._usage()}: missing argument {names}")

    def _usage(self) -> str:
        words = []
        for i in self._explicit:
            spec = self.maker.inputs[i]
            default = "=..." if spec.has_default else ""
            words.append((spec.name or f"<{spec.type}>") + default)
        return f"{self.name} takes ({', '.join(words)})"

    def _separate(self, values: list[Any]) -> None:
        """Copy arguments that may be overwritten if they overlap with others or are not writable
        arrays.
        """
        for i in self._overwritten:
            kind = self.maker.inputs[i].type
            unfit = i in self._given_away and not values[i].flags.carray
            if unfit or any(
                j != i and kind.may_share_memory(values[i], v) for j, v in enumerate(values)
            ):
                values[i] = kind.copy_value(values[i])

    def _new_value(self, i: int, value: Any) -> Any:
        """Return the new value of an input, converted to its type, or raise."""
        spec = self.maker.inputs[i]
        try:
            return spec.type.filter(value, strict=True)
        except (TypeError, ValueError) as problem:
            problem.add_note(f"This is the new value of {spec.name or spec.variable} ({spec.type})")
            raise

    def _shape(self, outputs: list[Any], subset: Any) -> Any:
        structure = self.maker.structure
        if isinstance(structure, tuple):
            found = dict(zip(structure, outputs, strict=True))
            if subset is None:
                return found
            return {key: found[key] for key in self._known(subset, structure)}
        if structure is None:
            return None
        if subset is not None:
            return self._apart(outputs, self._known(subset, range(len(outputs))))
        return outputs[0] if structure == "single" else outputs

    def _apart(self, outputs: list[Any], subset: Sequence[int]) -> list[Any]:
        """Return these outputs; older values are copied, unless they may share memory."""
        found: list[Any] = []
        for k, i in enumerate(subset):
            copied = i in subset[:k] and i not in self.maker.borrowed
            kind = self.maker.fgraph.outputs[i].type
            found.append(kind.copy_value(outputs[i]) if copied else outputs[i])
        return found

    def _known(self, subset: Any, allowed: Any) -> list[Any]:
        for key in subset:
            if key not in allowed:
                raise ValueError(f"{self.name}: output_subset: there is no output {key!r}")
        return list(subset)

    def plan(self) -> str:
        """Return the kept plans as text: the calls of each, and the targets of its guards.

        The first call with arguments of some layouts (dtypes, shapes and strides) makes a plan;
        later calls with the same layouts repeat it.

        Examples
        --------
        >>> import numpy as np
        >>> import symcomp
        >>> import symcomp.tensor as T
        >>> x = T.dvector("x")
        >>> f = symcomp.function([x], T.sort(x))
        >>> y = f(np.zeros(3))
        >>> print(f.plan())
        plan 0: 2 calls, arena of 0 bytes, 0 runs
            0  copy(m0+0 float64[3]) -> m1+0 float64[3]
            1  sort(m1+0 float64[3]) -> m1+0 float64[3]
        """
        machine = self.executable.machine
        return machine.plan() if hasattr(machine, "plan") else "The Python machine has no plans."

    def memory_report(self, *examples: Any) -> MemoryReport:
        """Report how much memory a call needs, with and without the storage plan. Nothing is
        computed.

        Parameters
        ----------
        *examples
            For the inputs, in their order: an example value, or a tuple of int, which is read as
            a shape. Inputs that are left out must have shapes that their types know, or a value.

        Returns
        -------
        MemoryReport
            Fields, and, printed, a table.

        Raises
        ------
        ShapeError
            If the shape of an input is not known; if shapes depend on the value of an input of
            which only the shape is given.

        Examples
        --------
        >>> import symcomp
        >>> import symcomp.tensor as T
        >>> x = T.dmatrix("x")
        >>> op_by_op = symcomp.Mode().excluding("fusion")
        >>> f = symcomp.function([x], T.tanh(T.exp(x) + 1).sum(), mode=op_by_op)
        >>> report = f.memory_report((1000, 1000))
        >>> report.unplanned, report.planned
        (24000000, 8000000)
        """
        return memory_report(self.maker, self.executable, examples)

    def cfunc(self, *examples: Any, fixed: Sequence[int] = ()) -> CFunction:
        """Return the function as one of C, for callers in C, Rust or numba.

        A call runs a kept plan, without Python; ``CFunction`` tells its signature. Shared
        variables, and inputs that are ``fixed``, keep the values that they have now.

        Parameters
        ----------
        *examples
            A value for each input, of the shape that it will always have. The function is computed
            once with them.
        fixed : sequence of int
            The inputs that are no arguments of the C function.

        Returns
        -------
        CFunction

        Raises
        ------
        TypeError
            If the function has updates, inputs that it may overwrite, or inputs and outputs that
            are no arrays.

        Examples
        --------
        >>> import ctypes
        >>> import numpy as np
        >>> import symcomp
        >>> import symcomp.tensor as T
        >>> x = T.dvector("x")
        >>> c = symcomp.function([x], T.sum(x ** 2)).cfunc(np.zeros(3))
        >>> c
        <CFunction (float64[3]) -> (float64[])>
        >>> argument, result = np.array([1.0, 2.0, 3.0]), np.empty(())
        >>> pointers = ctypes.c_void_p * 1
        >>> c.ctypes(c.data, pointers(argument.ctypes.data), pointers(result.ctypes.data))
        0
        >>> result
        array(14.)
        """
        return c_function(self.maker, self.executable, examples, fixed)

    # -- storage
    # -------------------------------------------------------------------------------------

    def _container(self, key: Any) -> Container:
        if isinstance(key, int) and 0 <= key < len(self.maker.inputs):
            return self.maker.inputs[key].container
        for spec in self.maker.inputs:
            same = key is spec.variable or key is spec.shared or key is spec.container
            if same or (isinstance(key, str) and key == spec.name):
                return spec.container
        raise KeyError(f"{self.name} has no input {key!r}")

    def __getitem__(self, key: Any) -> Any:
        """Return the stored value of an input, by its variable, name or position: a default or
        shared value.
        """
        return self._container(key).read()

    def __setitem__(self, key: Any, value: Any) -> None:
        self._container(key).set(value)

    def __contains__(self, key: Any) -> bool:
        try:
            self._container(key)
        except KeyError:
            return False
        return True

    @property
    def value(self) -> _Values:
        """The stored values, as ``f.value[key]``."""
        return _Values(self)

    @property
    def container(self) -> _Containers:
        """The containers, as ``f.container[key]``."""
        return _Containers(self)

    def get_shared(self) -> list[SharedVariable]:
        """Return the shared variables that the function reads or updates."""
        return [spec.shared for spec in self.maker.inputs if spec.shared is not None]

    def sync_shared(self) -> None:
        """Do nothing: all updates are done when a call returns. Kept for compatibility."""

    def sync(self) -> None:
        """Wait until the devices of the function have done the work of all calls so far.

        Raises
        ------
        IndexError, DeviceError
            If some of it failed; the message names the op and its line.

        Examples
        --------
        >>> import symcomp
        >>> import symcomp.tensor as T
        >>> x = T.fvector("x")
        >>> f = symcomp.function([x], (x * 2).transfer("emu"))
        >>> z = f([1, 2])
        >>> f.sync()
        """
        kinds = [variable.type for variable in self.maker.fgraph.clients]
        for name in sorted({kind.device for kind in kinds if hasattr(kind, "device")}):
            devices.driver_of(name).wait()

    def explain_last_error(self, file: Any = None) -> str | None:
        """Explain the last call that failed while the program ran.

        Shows the instructions around the one that failed, its inputs with their shapes, ranges and
        the lines that made them, the graph above it, and each step of a fused op.

        Parameters
        ----------
        file : file object or "str", optional
            The file to write to, standard output if not given; ``"str"`` returns the text instead.

        Examples
        --------
        >>> import symcomp
        >>> import symcomp.tensor as T
        >>> x, y = T.dvectors("x", "y")
        >>> f = symcomp.function([x, y], T.exp(x) + y)
        >>> f([1.0, 2.0], [1.0])
        Traceback (most recent call last):
            ...
        symcomp.errors.ShapeError: ...
        >>> print(f.explain_last_error(file="str").split("Its inputs:")[1])
        <BLANKLINE>
          0: x (float64 vector) = a float64 array of shape (2,): 1 to 2
        ...
          1: y (float64 vector) = a float64 array of shape (1,): 1
        ...
        """
        failure = self._machine.failure
        none = "No call has failed while it computed."
        text = none if failure is None else str(failure)
        return written(text, file)

    def kept_values(self) -> list[Any] | None:
        """Return the values of the last call, for each slot of the program, where they are kept."""
        return self._machine.kept

    def free(self) -> None:
        """Release memory kept from earlier calls.

        These are intermediate values (``allow_gc=False``), arenas, on devices too, and results
        that are recycled once the caller has dropped them.
        """
        self._machine.free()
        drop_arenas(self.executable)

    # -- copies
    # --------------------------------------------------------------------------------------

    def copy(
        self,
        share_memory: bool = False,
        swap: Mapping[SharedVariable, SharedVariable] | None = None,
        delete_updates: bool = False,
        name: str | None = None,
        profile: Any = None,
    ) -> Function:
        """Copy the function, with the same graph.

        Parameters
        ----------
        share_memory : bool
            Accepted for Theano's sake: calls own their storage, so nothing needs to be shared.
        swap : mapping of shared variable to shared variable, optional
            Use other shared variables, of the same types.
        delete_updates : bool
            Leave out the updates.
        name : str, optional
        profile : bool, str or ProfileStats, optional

        Returns
        -------
        Function
            Shared variables are the same objects, apart from those in ``swap``; default values are
            its own.
        """
        maker = replace(self.maker.without_updates() if delete_updates else self.maker)
        maker.inputs = [_own_input(spec) for spec in maker.inputs]
        for old, new in (swap or {}).items():
            _swap(maker, old, new)
        maker.name = name or self.name
        if profile is None:
            profile = self.profile is not None
        if not isinstance(profile, ProfileStats):
            profile = (
                ProfileStats(profile if isinstance(profile, str) else maker.name)
                if profile
                else None
            )
        maker.profile = profile
        with recorded(maker.name) as spans:
            twin = Function(maker, self.trust_input)
        if twin.profiled is not None:
            twin.profiled.spans = spans
        return twin

    def __reduce__(self) -> Any:
        return (Function, (self.maker, self.trust_input))

    def __repr__(self) -> str:
        return f"<Function {self._usage()}>"


def _own_input(spec: Input) -> Input:
    twin = copy.copy(spec)
    if spec.shared is None:
        old = spec.container
        twin.container = Container(old.type, None, old.name, old.strict, old.allow_downcast)
        twin.container.value = old.value
    return twin


def _swap(maker: Maker, old: Any, new: Any) -> None:
    for spec in maker.inputs:
        if spec.shared is old or (
            isinstance(old, str) and spec.shared is not None and spec.name == old
        ):
            if not isinstance(new, SharedVariable) or not spec.type.is_super(new.container.type):
                raise TypeError(
                    f"copy: swap: {old} is a shared {spec.type}; {new} "
                    f"({getattr(new, 'type', type(new).__name__)}) cannot stand for it"
                )
            spec.variable = spec.shared = new
            spec.container, spec.name = new.container, new.name
            return
    raise ValueError(f"copy: swap: {old} is not a shared variable of {maker.name}")


class RawFunction:
    """The program without argument handling: uses the stored values of the inputs."""

    def __init__(self, owner: Function) -> None:
        self._owner = owner

    def __call__(self, n_calls: int = 1) -> list[Any]:
        """Run ``n_calls`` times, with updates; return the outputs of the last time, as a list.

        Parameters
        ----------
        n_calls : int
            At least 1.
        """
        if n_calls < 1:
            raise ValueError(f"n_calls={n_calls}: must be at least 1")
        owner = self._owner
        owner._check_missing(set())
        return owner._repeat(n_calls)


def _flushes_denormals() -> bool:
    """Tell whether functions that are compiled now take denormal numbers for 0."""
    if config.flush_denormals and not can_flush_denormals:
        raise ValueError(
            "config.flush_denormals is True, but only x86-64 and ARM processors of 64 bits can "
            "flush denormal numbers; set it to False"
        )
    return config.flush_denormals


class _Containers:
    """``f.container``: the containers by variable or name."""

    def __init__(self, owner: Function) -> None:
        self._owner = owner

    def __getitem__(self, key: Any) -> Any:
        return self._owner._container(key)

    def __contains__(self, key: Any) -> bool:
        return key in self._owner

    def __len__(self) -> int:
        return len(self._owner.maker.inputs)

    def __iter__(self) -> Iterator[Any]:
        return iter([spec.container for spec in self._owner.maker.inputs])


class _Values(_Containers):
    """``f.value``: the stored values by variable or name; assignable."""

    def __getitem__(self, key: Any) -> Any:
        return self._owner[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._owner[key] = value

    def __iter__(self) -> Iterator[Any]:
        return iter([spec.container.read() for spec in self._owner.maker.inputs])
