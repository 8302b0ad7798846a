import sys

import pytest

from ragistry.errors import ConfigError
from ragistry.plugins import resolve_object
from tests.messages import refused


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An importable package of this test's own, removed from the interpreter afterwards."""
    folder = tmp_path / "shelf_of_tests"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "search.py").write_text("class Shout: ...\n_hidden = 1\n")
    (folder / "needy.py").write_text("import a_library_that_is_not_installed\n")
    (folder / "broken.py").write_text("1 / 0\n")
    (folder / "unparsable.py").write_text("def (:\n")
    monkeypatch.syspath_prepend(tmp_path)
    known = set(sys.modules)
    yield "shelf_of_tests"
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_a_name_becomes_the_thing(package):
    shout = resolve_object(f"{package}.search:Shout")
    assert shout.__name__ == "Shout"
    assert shout is resolve_object(f"{package}.search:Shout")


@pytest.mark.parametrize(
    "spec", ["", "naive", "module:", ":Class", "a b:C", ".module:Class", "m:a.b", "m:C()", 3, None]
)
def test_what_is_not_of_the_form_is_refused_with_an_example(spec):
    with refused(ConfigError) as caught:
        resolve_object(spec)
    assert repr(spec) in str(caught.value)


@pytest.mark.parametrize(
    "spec",
    [
        *("no_such_module_here:Class", "no_such_module_here.below:Class", "{}.serch:Shout", "{}.zzz:Shout"),
        *("{}.search.below:Shout", "{}.needy:Class", "{}.search:Shuot", "{}.search:Zzz"),
    ],
)
def test_what_is_missing_is_named_with_a_remedy(package, spec):
    with refused(ConfigError):
        resolve_object(spec.format(package))


@pytest.mark.parametrize(("module", "cause"), [("broken", ZeroDivisionError), ("unparsable", SyntaxError)])
def test_a_module_that_fails_inside_gives_its_own_error_as_cause(package, module, cause):
    with pytest.raises(ConfigError, match=f"fails on import with {cause.__name__}") as caught:
        resolve_object(f"{package}.{module}:Class")
    assert isinstance(caught.value.__cause__, cause)
