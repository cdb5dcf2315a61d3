"""``theano.config``: options passed to symcomp, options without effect, and the files read."""

import copy
import sys
from pathlib import Path
from typing import Any

import pytest

import symcomp
from symcomp.compat.config import (
    AddConfigVar,
    BoolParam,
    EnumStr,
    IntParam,
    TheanoConfig,
    read_environment,
)
from symcomp.config import Config, ConfigError


@pytest.fixture
def config() -> TheanoConfig:
    return TheanoConfig(Config({}))


def test_options_of_symcomp_are_its_own(config: TheanoConfig) -> None:
    config.floatX = "float32"
    assert config._target.floatX == "float32"
    with pytest.raises(ConfigError, match="floatX"):
        config.floatX = "float31"


def test_the_real_one_is_that_of_symcomp() -> None:
    theano: Any = sys.modules["theano"]
    with theano.config.change_flags(floatX="float32"):
        assert symcomp.config.floatX == "float32"
        assert symcomp.tensor.matrix().dtype == "float32"
    assert symcomp.config.floatX == "float64"


def test_others_are_remembered(config: TheanoConfig) -> None:
    config.compute_test_value = "warn"
    config.gcc.cxxflags = "-O3"
    config.lib.cnmem = 0.8
    config.warn.any_bug_of_old = False
    assert config.compute_test_value == "warn"
    assert config.gcc.cxxflags == "-O3"
    assert config.lib.cnmem == 0.8
    assert config.warn.any_bug_of_old is False
    assert config.warn.another is False
    assert "lib.cnmem = 0.8" in str(config)


def test_unknown_ones_are_refused(config: TheanoConfig) -> None:
    with pytest.raises(AttributeError, match="no option 'floaty'"):
        _ = config.floaty
    with pytest.raises(ConfigError, match="no option 'floaty'"):
        config.floaty = 1
    with pytest.raises(ConfigError, match=r"no option 'gcc\.floaty'"):
        config.gcc.floaty = 1


def test_there_is_only_the_cpu(config: TheanoConfig) -> None:
    assert config.device == "cpu"
    with pytest.warns(UserWarning, match=r"device='cuda0'.*CPU"):
        config.device = "cuda0"
    assert config.device == "cpu"


def test_flags_change_and_come_back(config: TheanoConfig) -> None:
    @config.change_flags({"scan.allow_gc": True}, floatX="float32")
    def inside() -> tuple[bool, str]:
        return config.scan.allow_gc, config.floatX

    assert inside() == (True, "float32")
    assert (config.scan.allow_gc, config.floatX) == (False, "float64")
    with pytest.raises(AttributeError), config.change_flags({"device": "cpu", "floaty": 1}):
        raise AssertionError("unreachable")
    with pytest.raises(ZeroDivisionError), config.change_flags(openmp=True):
        _ = 1 / 0
    assert config.openmp is False


def test_flags_and_files_are_read(config: TheanoConfig, tmp_path: Path) -> None:
    file = tmp_path / "rc"
    file.write_text("[global]\nfloatX = float32\nopenmp = True\n[lib]\ncnmem = 0.5\n")
    environ = {"THEANORC": str(file), "THEANO_FLAGS": "floatX=float16, gcc.cxxflags=-O3,"}
    read_environment(environ, config)
    assert config.floatX == "float16"
    assert config.openmp is True
    assert config.lib.cnmem == 0.5
    assert config.gcc.cxxflags == "-O3"


def test_what_is_unknown_in_them_is_a_warning(config: TheanoConfig) -> None:
    with pytest.warns(UserWarning, match="'floaty' is unknown"):
        read_environment({"THEANO_FLAGS": "floaty=1"}, config)
    with pytest.raises(ConfigError, match="'floatX' is not of the form"):
        read_environment({"THEANO_FLAGS": "floatX"}, config)
    with pytest.raises(ConfigError, match="openmp='maybe'"):
        read_environment({"THEANO_FLAGS": "openmp=maybe"}, config)


def test_users_add_options() -> None:
    theano: Any = sys.modules["theano"]
    try:
        AddConfigVar("mylib.verbose", "How much to say.", BoolParam(False))
        AddConfigVar("mylib.level", "Which.", EnumStr("low", "high"))
        assert theano.config.mylib.verbose is False
        theano.config.mylib.level = "high"
        assert theano.config.mylib.level == "high"
        with pytest.raises(ConfigError, match="middle.*low, high"):
            theano.config.mylib.level = "middle"
        with pytest.raises(AttributeError, match="already"):
            AddConfigVar("mylib.verbose", "", BoolParam(False))
    finally:
        theano.config.remove("mylib.verbose")
        theano.config.remove("mylib.level")


def test_a_copy_is_of_the_same_options(config: TheanoConfig) -> None:
    twin = copy.copy(config)
    twin.floatX = "float32"
    assert config.floatX == "float32"


def test_the_list_of_all_options() -> None:
    theano: Any = sys.modules["theano"]
    options = theano.configparser._config_var_list
    names = [option.fullname for option in options]
    assert "floatX" in names and "scan.allow_gc" in names and len(set(names)) == len(names)
    AddConfigVar("mylib.depth", "How deep.", IntParam(1))
    try:
        depth = options[-1]
        assert (depth.fullname, depth.__get__(True, None)) == ("mylib.depth", 1)
        depth.__set__(None, 3)
        assert theano.config.mylib.depth == 3
    finally:
        theano.config.remove("mylib.depth")
    assert [option.fullname for option in options] == names
