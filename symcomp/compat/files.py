"""``theano.misc.pkl_utils``: objects in zip files, with each array in a .npy member."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from symcomp.compile.shared import SharedVariable

__all__ = [
    "DEFAULT_PROTOCOL", "dump", "load", "PersistentCudaNdarrayID", "PersistentGpuArrayID",
    "PersistentNdarrayID", "PersistentNdarrayLoad", "PersistentSharedVariableID", "StripPickler",
    "zipadd",
]  # fmt: skip

DEFAULT_PROTOCOL = pickle.HIGHEST_PROTOCOL
# The member of the zip file that holds the pickle, and the tag of references to arrays.
_PICKLE, _ARRAY = "pkl", "ndarray"


def zipadd(func: Callable[[Any], None], zip_file: zipfile.ZipFile, name: str) -> None:
    """Let ``func`` write to a file, and add its content as a member of a zip file."""
    buffer = io.BytesIO()
    func(buffer)
    zip_file.writestr(name, buffer.getvalue())


class PersistentNdarrayID:
    """Writes arrays as members of a zip file, for ``persistent_id`` of a pickler."""

    def __init__(self, zip_file: zipfile.ZipFile) -> None:
        self.zip_file = zip_file
        self.count = 0
        self.seen: dict[int, str] = {}

    def _resolve_name(self, obj: Any) -> str:
        name = f"array_{self.count}"
        self.count += 1
        return name

    def __call__(self, obj: Any) -> str | None:
        if type(obj) is not np.ndarray or obj.dtype.hasobject:
            return None
        if id(obj) not in self.seen:
            name = self._resolve_name(obj)
            zipadd(lambda f: np.lib.format.write_array(f, obj), self.zip_file, name)
            self.seen[id(obj)] = f"{_ARRAY}.{name}"
        return self.seen[id(obj)]


PersistentGpuArrayID = PersistentCudaNdarrayID = PersistentNdarrayID


class PersistentSharedVariableID(PersistentNdarrayID):
    """Writes arrays as members of a zip file; the values of shared variables by their names.

    Parameters
    ----------
    zip_file : zipfile.ZipFile
    allow_unnamed : bool
        Number the arrays of shared variables without a name, or refuse them.
    allow_duplicates : bool
        Number equal names (``x``, ``x_2``), or refuse them.
    """

    def __init__(
        self, zip_file: zipfile.ZipFile, allow_unnamed: bool = True, allow_duplicates: bool = True
    ) -> None:
        super().__init__(zip_file)
        self.name_counter: Counter[str] = Counter()
        self.ndarray_names: dict[int, str] = {}
        self.allow_unnamed, self.allow_duplicates = allow_unnamed, allow_duplicates

    def _resolve_name(self, obj: Any) -> str:
        name = self.ndarray_names.get(id(obj))
        if not name:
            return super()._resolve_name(obj)
        self.name_counter[name] += 1
        number = self.name_counter[name]
        return name if number == 1 else f"{name}_{number}"

    def __call__(self, obj: Any) -> str | None:
        if isinstance(obj, SharedVariable):
            self._note(obj)
        return super().__call__(obj)

    def _note(self, shared: SharedVariable) -> None:
        name = shared.name
        if name == _PICKLE:
            raise ValueError(f"dump: a shared variable cannot be called {_PICKLE!r} in the file")
        if not name and not self.allow_unnamed:
            raise ValueError(f"dump: the shared variable {shared} has no name")
        if not name:
            return
        known = name in self.ndarray_names.values()
        if known and not self.allow_duplicates and id(_value(shared)) not in self.ndarray_names:
            raise ValueError(f"dump: two shared variables are called {name!r}")
        self.ndarray_names[id(_value(shared))] = name


def _value(shared: SharedVariable) -> Any:
    return shared.container.value


class PersistentNdarrayLoad:
    """Reads the arrays that PersistentNdarrayID has written, for ``persistent_load``."""

    def __init__(self, zip_file: zipfile.ZipFile) -> None:
        self.zip_file = zip_file
        self.cache: dict[str, np.ndarray] = {}

    def __call__(self, persid: str) -> np.ndarray:
        kind, _, name = persid.partition(".")
        if kind != _ARRAY:
            raise pickle.UnpicklingError(f"load: {persid!r} stands for no array")
        if name not in self.cache:
            with self.zip_file.open(name) as member:
                self.cache[name] = np.lib.format.read_array(member, allow_pickle=False)
        return self.cache[name]


def dump(
    obj: Any,
    file_handler: Any,
    protocol: int = DEFAULT_PROTOCOL,
    persistent_id: Callable[..., Any] | None = PersistentSharedVariableID,
) -> None:
    """Pickle an object into a zip file; ``numpy.load`` can read its arrays.

    Parameters
    ----------
    obj : object
    file_handler : file
        Open for writing bytes.
    protocol : int
    persistent_id : callable or None
        Takes the zip file and returns the ``persistent_id`` of the pickler; None: arrays are
        pickled.

    Examples
    --------
    >>> import io, symcomp
    >>> from symcomp.compat.files import dump, load
    >>> file = io.BytesIO()
    >>> dump({"weights": symcomp.shared(np.ones(2), "W")}, file)
    >>> position = file.seek(0)
    >>> np.load(file)["W"]
    array([1., 1.])
    >>> load(file)["weights"].get_value()
    array([1., 1.])
    """
    with zipfile.ZipFile(file_handler, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as zip_file:

        def write(file: Any) -> None:
            pickler = pickle.Pickler(file, protocol=protocol)
            if persistent_id is not None:
                pickler.persistent_id = persistent_id(zip_file)  # type: ignore[method-assign]
            pickler.dump(obj)

        zipadd(write, zip_file, _PICKLE)


def load(f: Any, persistent_load: Callable[..., Any] | None = PersistentNdarrayLoad) -> Any:
    """Read a file that ``dump`` wrote. As with every pickle, only from files that you trust."""
    with zipfile.ZipFile(f) as zip_file:
        unpickler = pickle.Unpickler(io.BytesIO(zip_file.read(_PICKLE)))
        if persistent_load is not None:
            unpickler.persistent_load = persistent_load(zip_file)  # type: ignore[method-assign]
        return unpickler.load()


class StripPickler:
    """A pickler for files of one object after the other."""

    def __init__(self, file: Any, protocol: int = 0, extra_tag_to_remove: Any = None) -> None:
        self._pickler = pickle.Pickler(file, protocol)

    def dump(self, obj: Any) -> None:
        """Write one object."""
        self._pickler.dump(obj)
