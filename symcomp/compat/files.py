"""``theano.misc.pkl_utils``: variables and functions in files."""

from __future__ import annotations

import pickle
from typing import Any

DEFAULT_PROTOCOL = pickle.HIGHEST_PROTOCOL


def dump(
    obj: Any, file_handler: Any, protocol: int = DEFAULT_PROTOCOL, persistent_id: Any = None
) -> None:
    """Pickle an object, with the values of its shared variables."""
    if persistent_id is not None:
        raise NotImplementedError("theano.misc.pkl_utils.dump: persistent_id")
    pickle.dump(obj, file_handler, protocol)


def load(f: Any, persistent_load: Any = None) -> Any:
    """Read what ``dump`` wrote. As with every pickle, only from files that you trust."""
    if persistent_load is not None:
        raise NotImplementedError("theano.misc.pkl_utils.load: persistent_load")
    return pickle.load(f)


class StripPickler:
    """A pickler for files of one object after the other."""

    def __init__(self, file: Any, protocol: int = 0, extra_tag_to_remove: Any = None) -> None:
        self._pickler = pickle.Pickler(file, protocol)

    def dump(self, obj: Any) -> None:
        """Write one object."""
        self._pickler.dump(obj)
