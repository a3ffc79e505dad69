"""Builds the documentation site from docs/ into site/, and refuses what does not hold: `make site`.

Refused are dead links (pages, anchors, pictures), what would come from the network, pages that are not in the menu, and
public names that no page describes.
"""

import importlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from prometheus_client import Counter
from prometheus_client.metrics import MetricWrapperBase

ROOT = Path(__file__).parents[1]
MODULES = ("suffice", "suffice.answers", "suffice.inspect", "suffice.langchain", "suffice.ray", "suffice.testing")
SHIM = "https://unpkg.com/iframe-worker/shim"
"""What the generator puts into pages for the search on disk; ours does the same, and is not from the network."""

_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_LINK = re.compile(r"(?<=\]\()[^)\s#]+(?=[)#])")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        site, problems = build(Path(folder))
        if problems:
            sys.exit("\n".join(problems))
        shutil.rmtree(ROOT / "site", ignore_errors=True)
        shutil.copytree(site, ROOT / "site")
    print(f"{len(_html(ROOT / 'site'))} pages: open site/index.html")


def build(folder: Path, root: Path = ROOT) -> tuple[Path, list[str]]:
    """Build the site below a folder; where it is, and what is wrong with it."""
    stage(folder, root)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(folder / "zensical.toml")]
    done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
    site = folder / "site"
    (site / "404.html").unlink(missing_ok=True)  # its links are from a root that a folder on disk has not
    for page in _html(site):
        page.write_text(page.read_text().replace(SHIM, "assets/worker.js"))
    problems = [*not_in_the_menu(root), *undescribed(root), *dead_links(site), *from_the_network(site)]
    return site, problems or [_COLOUR.sub("", done.stderr)] * (done.returncode != 0)


def pages(root: Path) -> dict[Path, str]:
    """The pages, by the file that each is made from."""
    own = [path for path in sorted((root / "docs").iterdir()) if path.suffix in (".md", ".ipynb")]
    return {path: path.with_suffix(".md").name for path in own} | {root / "CHANGELOG.md": "changelog.md"}


def stage(folder: Path, root: Path) -> None:
    """Copy docs/ and the configuration; what links lead to outside of docs/ is copied below `files`."""
    docs, made = folder / "docs", pages(root)
    shutil.copytree(root / "docs", docs, ignore=shutil.ignore_patterns("*.md", "*.ipynb"))
    shutil.copy(root / "zensical.toml", folder)

    def relocated(page: Path, found: re.Match[str]) -> str:
        link = found[0]
        target = (page.parent / link).resolve()
        if "://" in link or not target.is_file() or not target.is_relative_to(root):
            return link
        if target in made:
            return made[target]
        if target.is_relative_to(root / "docs"):
            return target.relative_to(root / "docs").as_posix()
        copy = docs / "files" / target.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(target, copy)
        return copy.relative_to(docs).as_posix()

    for source, name in made.items():
        text = notebook(source) if source.suffix == ".ipynb" else source.read_text()
        (docs / name).write_text(_LINK.sub(partial(relocated, source), text))


def notebook(path: Path) -> str:
    """A notebook as a page: its text, its code, and what that printed or showed."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        parts.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
        parts += [shown for output in cell.get("outputs", []) if (shown := _output(output))]
    return "\n\n".join(parts) + "\n"


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        return re.sub(r"\n\s*\n", "\n", "".join(data["text/html"])).strip()
    if "image/png" in data:
        return f"![](data:image/png;base64,{''.join(data['image/png']).strip()})"
    text = "".join(output.get("text") or data.get("text/plain", ""))
    return f"```text\n{text.rstrip()}\n```" if text else ""


def not_in_the_menu(root: Path) -> list[str]:
    """Pages that nobody finds, and names in the menu that lead to none."""
    shown = set(_leaves(tomllib.loads((root / "zensical.toml").read_text())["project"]["nav"]))
    there = pages(root)
    lost = {path.relative_to(root): name for path, name in there.items() if name not in shown}
    missing = shown - set(there.values())
    advice = "is not in the site's menu: give"
    return [
        *(f"{path} {advice} {name} a line in nav of zensical.toml" for path, name in lost.items()),
        *(f"nav of zensical.toml names {name}, but there is no such page" for name in sorted(missing)),
    ]


def _leaves(menu: Any) -> Iterator[str]:
    if isinstance(menu, str):
        yield menu
    else:
        for one in menu.values() if isinstance(menu, dict) else menu:
            yield from _leaves(one)


def undescribed(root: Path) -> list[str]:
    """Public names that their page does not describe."""
    return [
        f"docs/{page} does not describe {mark.strip('#| ')}"
        for page, marks in described().items()
        for mark in marks
        if mark not in (root / "docs" / page).read_text()
    ]


def described() -> dict[str, Iterable[str]]:
    """What certain pages must have: a heading or a row for every public name, exception and metric."""
    names = [name for module in MODULES for name in importlib.import_module(module).__all__]
    errors = vars(importlib.import_module("suffice.errors")).values()
    metrics = vars(importlib.import_module("suffice.gateway.operations.metrics")).values()
    return {
        "api.md": [f"### `{name}`" for name in names],
        "exceptions.md": [f"| `{one.__name__}` |" for one in errors if _is_error(one)],
        "metrics.md": [f"| `{_name(one)}` |" for one in metrics if isinstance(one, MetricWrapperBase)],
    }


def _is_error(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Exception)


def _name(metric: MetricWrapperBase) -> str:
    return f"{metric._name}{'_total' * isinstance(metric, Counter)}"


class _Page(HTMLParser):
    """What a page has: anchors, links, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = dict(attrs)
        self.ids.add(has.get("id") or "")
        link = has.get("href") or has.get("src")
        if link:
            (self.links if tag == "a" else self.loaded).append(link)


def _html(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def dead_links(site: Path) -> list[str]:
    """Links to pages, anchors and pictures that are not there."""
    read = {path: _Page(path) for path in _html(site)}
    problems = []
    for path, page in read.items():
        for link in dict.fromkeys(page.links + page.loaded):
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            dead = not target.is_file() or (anchor and target in read and anchor not in read[target].ids)
            if dead and not (parts.scheme or parts.netloc):
                problems.append(f"{path.relative_to(site)}: {link} leads nowhere")
    return problems


def from_the_network(site: Path) -> list[str]:
    """What a page or a style sheet would load from elsewhere."""
    loaded = [(path, link) for path in _html(site) for link in _Page(path).loaded]
    for path in site.rglob("*.css"):
        loaded += [(path, link) for link in re.findall(r"url\(['\"]?(.*?)['\"]?\)", path.read_text())]
    return [
        f"{path.relative_to(site)} loads {link} from the network"
        for path, link in loaded
        if re.match(r"(https?:)?//", link)
    ]


if __name__ == "__main__":
    main()
