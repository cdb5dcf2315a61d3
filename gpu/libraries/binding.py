"""A library of NVIDIA's for one device: its functions, its handle and the stream of its work."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Container
from typing import Any, ClassVar, TypeVar

from symcomp.cvm.machine import LibraryHandle
from symcomp.gpu.driver.interface import Driver
from symcomp.gpu.errors import DeviceError
from symcomp.gpu.libraries.finding import path_of


class NvidiaLibrary:
    """A library that is loaded.

    Attributes
    ----------
    name, called : str
        As files have it, and as NVIDIA writes it.
    needed : tuple of str
        Functions without which it is not used.
    is_recordable : bool
        Whether its work can be part of graphs.
    errors : dict of int to str
    path : str

    Parameters
    ----------
    driver : Driver
    path : str
    """

    name: ClassVar[str]
    called: ClassVar[str]
    needed: ClassVar[tuple[str, ...]] = ()
    errors: ClassVar[dict[int, str]] = {}
    is_recordable: bool = True

    def __init__(self, driver: Driver, path: str) -> None:
        self.path, self.driver = path, driver
        self._library = ctypes.CDLL(path)
        self._addresses: dict[str, int] = {}
        for function in self.needed:
            self.address(function)

    def address(self, function: str) -> int:
        """Return the address of a function.

        Raises
        ------
        DeviceError
            If the library has no such function.
        """
        found = self._addresses.get(function)
        if found is None:
            try:
                made = getattr(self._library, function)
            except AttributeError:
                raise DeviceError(f"{self.path} has no function {function}") from None
            found = self._addresses[function] = ctypes.cast(made, ctypes.c_void_p).value or 0
        return found

    def call(self, function: str, *given: Any) -> None:
        """Call a function now, in the context of the device.

        Parameters
        ----------
        given : int, or what ctypes takes
            Integers are given as words of 8 bytes.

        Raises
        ------
        DeviceError
            If it fails.
        """
        self.try_call((), function, *given)

    def try_call(self, refusals: Container[int], function: str, *given: Any) -> bool:
        """Call a function now; return whether it was done: False, if its answer is a refusal."""
        self.address(function)
        words = [ctypes.c_uint64(g % 2**64) if isinstance(g, int) else g for g in given]
        code = self.driver.in_context(getattr(self._library, function), *words)
        if code in refusals:
            return False
        if code:
            raise DeviceError(f"{function} on {self.driver.name}: {self.message(code)}")
        return True

    def message(self, code: int) -> str:
        """Return what an error of a function means."""
        return f"{self.called} answers {code} ({self.errors.get(code, 'unknown')})"


class LibraryWithHandle(NvidiaLibrary):
    """A library with one handle for a device.

    Attributes
    ----------
    creating, setting : str
        The functions that create a handle and set its stream.
    number : int
        The handle, as the library has it.
    handle : LibraryHandle
        The same, for plans.
    """

    creating: ClassVar[str]
    setting: ClassVar[str]

    def __init__(self, driver: Driver, path: str) -> None:
        super().__init__(driver, path)
        handle = ctypes.c_void_p()
        self.call(self.creating, ctypes.byref(handle))
        self.number = handle.value or 0
        self.handle = self.handle_for(self.number)

    def handle_for(self, handle: int) -> LibraryHandle:
        """Return a new handle for plans, which call functions with it."""
        return LibraryHandle(handle, self.address(self.setting))


Kind = TypeVar("Kind", bound=NvidiaLibrary)


def library_of(driver: Driver, kind: type[Kind]) -> Kind | None:
    """Return a library for a device; None, if it is missing.

    Warns
    -----
    RuntimeWarning
        Once, if it is there but cannot be used.
    """
    with driver.lock:
        if kind.name not in driver.libraries:
            driver.libraries[kind.name] = _opened(driver, kind)
        found: Any = driver.libraries[kind.name]
    return found


def _opened(driver: Driver, kind: type[Kind]) -> Kind | None:
    paths = driver.library_paths
    path = path_of(kind.name) if paths is None else paths.get(kind.name)
    if path is None:
        return None
    try:
        return kind(driver, path)
    except (OSError, DeviceError) as problem:
        warnings.warn(
            f"{kind.called} is not used on {driver.name}, though it is there: {problem}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
