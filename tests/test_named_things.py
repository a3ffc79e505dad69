"""The registry for any kind of thing, and what other packages offer to it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.packages import install, offers_of

from suffice.errors import OptionError
from suffice.registry import Registry

PLUGIN = Path(__file__).with_name("plugin")


def shapes() -> Registry[str]:
    """A registry of our own, with a function, a class and one that takes all that follows its name."""
    registry = Registry[str]("shape", "suffice.test_shapes", OptionError)

    @registry.register("dot")
    def dot(size: int = 1) -> str:
        return f"dot of {size}"

    @registry.register("path", rest="POINTS")
    def path(points: str) -> str:
        return f"path {points}"

    @registry.register("free", rest="WORDS")
    def free(words: str = "none") -> str:
        return f"free {words}"

    return registry


def test_a_rest_is_one_text_whatever_is_in_it() -> None:
    assert shapes().get("path:a=1,b:2") == "path a=1,b:2"
    assert shapes().get("free") == "free none"
    with pytest.raises(OptionError, match='shape "path": POINTS must be given, as in path:POINTS'):
        shapes().get("path")


def test_what_takes_a_rest_is_listed_as_a_form() -> None:
    assert shapes().names() == ["dot"]
    assert shapes().forms() == ["dot", "path:POINTS", "free:WORDS"]
    with pytest.raises(
        OptionError, match='unknown shape "dt": there are dot, path:POINTS, free:WORDS; did you mean "dot"'
    ):
        shapes().get("dt")


def test_what_may_be_registered_is_up_to_the_registry() -> None:
    def adopt(registered: Any) -> Callable[..., str]:
        raise ValueError("must be callable")

    with pytest.raises(OptionError, match='"three" must be callable'):
        Registry("shape", "suffice.test_shapes", OptionError, adopt).register("three")(3)


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Install a package with a module of its name, which offers things to our registry."""

    def offered(package: str, code: str, **names: str) -> None:
        (tmp_path / f"{package}.py").write_text(code)
        install(tmp_path, package, {"suffice.test_shapes": names})

    monkeypatch.syspath_prepend(str(tmp_path))
    return offered


def test_packages_offer_things_that_are_loaded_when_asked_for(offer: Callable[..., None]) -> None:
    code = "def star(points: int = 5) -> str:\n    return f'star with {points}'\n"
    offer("stars", code, star="stars:star", gone="stars:gone")
    offer("broken", "raise RuntimeError('half\\na star')\n", half="broken:half")
    registry = shapes()
    assert registry.names() == ["dot", "gone", "half", "star"]
    assert registry.get("star:points=6") == "star with 6"
    with pytest.raises(OptionError, match=r'the shape "half" of the package broken can\'t be loaded: half a star'):
        registry.get("half")
    with pytest.raises(OptionError, match=r'the shape "gone" of the package stars can\'t be loaded'):
        registry.get("gone")
    assert registry.get("star") == "star with 5"


def test_two_packages_that_offer_the_same_name_are_told_apart_by_the_user(offer: Callable[..., None]) -> None:
    for package in ("one", "two"):
        offer(f"moons_{package}", "def moon():\n    return 'moon'\n", moon=f"moons_{package}:moon")
    with pytest.raises(OptionError, match='the shape "moon" is in moons_one and moons_two: remove all of them but one'):
        shapes().get("moon")


def test_a_package_can_not_take_the_name_of_what_is_here(offer: Callable[..., None]) -> None:
    offer("dots", "def dot():\n    return 'another'\n", dot="dots:dot")
    assert shapes().get("dot") == "dot of 1"


def test_another_package_is_found_by_the_entry_points_that_it_declares(tmp_path: Path) -> None:
    """A package of its own, in a process of its own: each registry has looked for others in this one."""
    shutil.copytree(PLUGIN, tmp_path, dirs_exist_ok=True)
    install(tmp_path, "suffice-example", offers_of(PLUGIN / "pyproject.toml"))
    check = (
        "from suffice import get_controller\nfrom suffice.answers import get_extractor\n"
        "print(get_controller('steady:draws=3').draws, get_extractor('last-word')('The sky is blue.'))\n"
        "get_controller('stedy')"
    )
    beside = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, env=beside)
    assert done.stdout == "3 blue\n" and 'did you mean "steady"?' in done.stderr
