"""`suffice top`: what a gateway does, in a terminal, as it does it."""

import http.client
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from suffice import OptionError, SufficeError
from suffice.cli.app import app, new_console
from suffice.cli.outputs import JsonFile
from suffice.live.servers.targets import whole_url
from suffice.settings import setting

PATIENCE_SECONDS = 5.0
BETWEEN_SECONDS = 1.0
"""How long it waits for the gateway, and between two looks."""
MOST_BYTES = 16 << 20
_OVER_ONE = {
    "votes": "votes",
    "samples\nover one": "over_one_samples",
    "tokens\nover one": "over_one_tokens",
    "cost\nover one": "cost_over_one",
    "answers\nchanged": "changed",
}
_EXPECTED = {
    "requests": "requests",
    "would\nvote": "would_vote",
    "expected\nsamples": "expected_samples",
    "tokens": "tokens",
    "expected\ntokens": "expected_tokens",
}
_TAKEN = {"requests": "requests", "samples": "samples", "tokens": "tokens"}
_COSTS = {"tokens\nover one": "over_one_tokens", "cost": "cost", "cost\nover one": "cost_over_one"}
_KEYS = {"name": "name", **_TAKEN, **_COSTS}
_RECENT = {
    **{name: name for name in ("time", "what", "status", "samples", "tokens")},
    "tokens\nover one": "over_one_tokens",
    "sure": "confidence",
    "cer-\ntain": "certainty",
    "seconds": "seconds",
}
"""What a column is called, broken so that all fits 80 columns, and what it shows."""
_LEFT = ("name", "what", "time", "model", "key", "evidence")
_GROUPS = 8
"""So many models, keys and kinds of evidence are shown, the dearest."""


class GoneError(SufficeError):
    """A gateway does not tell its figures, in a sentence."""


class GatewayClient:
    """A gateway over one connection, which stays with the same of its processes."""

    def __init__(self, url: str, key: str | None) -> None:
        parts = urlsplit(whole_url(url, "url"))
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self.where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._path = parts.path.rstrip("/").removesuffix("/v1")
        self._connection = kind(parts.hostname or "", parts.port, timeout=PATIENCE_SECONDS)
        self._headers = {"authorization": f"Bearer {key}"} if key else {}

    def figures(self) -> dict[str, Any]:
        """What it tells, with the usage of keys where it lets us see that."""
        status, told = self._get("/v1/suffice/recent")
        if status == 401:
            raise GoneError(f"{self.where} asks for a key, and was shown none of its own: --key-env names its variable")
        if status != 200 or not isinstance(told.get("totals"), dict):
            raise GoneError(f"{self.where} answers, and not as a gateway of suffice does")
        usage = self._get("/v1/suffice/usage")[1] if told.get("operator") else {}  # else its log would have an error
        _, audits = self._get("/v1/suffice/audits")
        return told | {"audits": audits} | ({"usage": usage} if isinstance(usage.get("keys"), list) else {})

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def _get(self, path: str) -> tuple[int, dict[str, Any]]:
        try:
            self._connection.request("GET", self._path + path, headers=self._headers)
            reply = self._connection.getresponse()
            body = reply.read(MOST_BYTES)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise GoneError(f"{self.where}: nobody answers ({type(error).__name__})") from None
        try:
            told = json.loads(body)
        except ValueError:
            told = None
        return reply.status, told if isinstance(told, dict) else {}


@app.command()
def top(
    url: Annotated[str, typer.Argument(metavar="URL", help="The gateway, as http://localhost:8000.")],
    outputs: JsonFile,
    key_env: str | None = setting(None, "The variable with a key, where the gateway asks for one.", "NAME"),
    shadow: bool = setting(False, "Tell what auto would do, of a gateway with --vote shadow."),
) -> None:
    """Watch a gateway: what votes cost over one response, what they changed, what is under way, and who asks.

    Where the output is no terminal, it looks once.
    """
    if key_env and not os.environ.get(key_env):
        raise OptionError(f"{key_env}: the variable is not set; put the key into it", "key_env")
    with closing(GatewayClient(url, os.environ[key_env].strip() if key_env else None)) as gateway:
        told = gateway.figures()
        if outputs.json:
            outputs.write(json=lambda: json.dumps(told) + "\n")
        elif not sys.stdout.isatty():
            new_console().print(shadow_screen(gateway.where, told) if shadow else screen(gateway.where, told))
        else:
            console = Console(markup=False, emoji=False)
            follow(gateway, told, console, lambda: time.sleep(BETWEEN_SECONDS), shadow)


def follow(
    gateway: GatewayClient, told: dict[str, Any], console: Console, wait: Callable[[], None], shadow: bool = False
) -> None:
    """Look again and again until Ctrl-C; a gateway that is gone may come back."""
    gone = ""
    with Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        try:
            while True:
                rows = max(3, console.height - 20)
                shown = shadow_screen if shadow else screen
                live.update(shown(gateway.where, told, rows, gone), refresh=True)
                wait()
                try:
                    told, gone = gateway.figures(), ""
                except GoneError as error:
                    gone = f"{error}; these are the last figures"
        except KeyboardInterrupt:
            pass


def shadow_screen(where: str, told: dict[str, Any], rows: int = 20, gone: str = "") -> Group:
    """What auto would do, by model, key and evidence, and in a sentence."""
    costs = told.get("costs", {})
    groups = [one for one in costs.get("groups", []) if one.get("expected_tokens")]
    said = costs.get("shadow") or "there is nothing to tell: no request was answered in the shadow (--vote shadow)"
    heading = _text(gone, "bold red") if gone else _heading(where, told)
    return Group(heading, _groups("What auto would spend", groups[:rows], _EXPECTED), _text(said, "bold"))


def screen(where: str, told: dict[str, Any], rows: int = 20, gone: str = "") -> Group:
    """All of it, one below the other: what votes cost and brought comes first."""
    costs, audits, totals = told.get("costs", {}), told.get("audits", {}).get("all", {}), told["totals"]
    sentences = [costs.get(name) for name in ("said", "savings", "shadow", "cap")]
    sentences.append(audits.get("said") if audits.get("audits") else None)
    voted = [one for one in costs.get("groups", []) if one.get("votes")]
    priced = any(one.get("cost_over_one") for one in voted)
    over_one = {heading: name for heading, name in _OVER_ONE.items() if priced or name != "cost_over_one"}
    parts: list[Any] = [_text(gone, "bold red") if gone else _heading(where, told)]
    parts += [_text(sentence, "bold") for sentence in sentences if sentence]
    again = {"prompt tok-\nens again": "over_one_prompt_tokens"}
    parts.append(_table("", _TAKEN | over_one | again, [totals]))
    if voted:
        parts.append(_groups("What votes cost", voted[:_GROUPS], over_one))
    if "usage" in told:
        parts.append(_table("Keys", _KEYS, told["usage"]["keys"]))
    parts += [_upstream(one) for one in told.get("upstreams", [])]
    under_way = [_now(one) for one in told.get("under_way", [])[:rows]]
    recent = [*under_way, *told.get("recent", [])[: rows - len(under_way)]]
    parts.append(_table("Recent requests", _RECENT, [one | {"what": _what(one)} for one in recent]))
    return Group(*parts)


def _heading(where: str, told: dict[str, Any]) -> Text:
    workers = told.get("workers", 1)
    of = f", one of {workers} processes" if isinstance(workers, int) and workers > 1 else ""
    return _text(f"suffice at {where}{of}, up for {told.get('seconds', 0):,.0f} s")


def _groups(title: str, groups: list[dict[str, Any]], columns: dict[str, str]) -> Table:
    """What was or would be spent, by model, key and evidence."""
    named = ["model", *(["key"] if any(one.get("key") for one in groups) else []), "evidence"]
    return _table(title, {name: name for name in named} | columns, groups)


def _upstream(one: dict[str, Any]) -> Text:
    health = "answers" if one.get("healthy") else "is set aside"
    return _text(f"{one.get('name')} {health}, {one.get('in_flight')} in flight")


def _now(one: dict[str, Any]) -> dict[str, Any]:
    """A vote under way, as those that have ended are told."""
    samples = f"{one.get('arrived')}/{one.get('asked')}" if "asked" in one else ""
    return one | {"time": "now", "samples": samples} | dict.fromkeys(("status", "confidence", "certainty"))


def _what(one: dict[str, Any]) -> str:
    """A request in a few words: who decides on its vote, or why there is none."""
    about = one.get("controller") if one.get("kind") == "vote" else one.get("no_vote")
    return f"{one.get('kind')}, {about or one.get('path')}"


def _table(title: str, columns: dict[str, str], rows: list[dict[str, Any]]) -> Table:
    """A table; where there is not enough room, names are cut short, and never a number."""
    table = Table(title=title or None, title_justify="left", box=None, padding=(0, 1, 0, 0))
    for heading in columns:
        justify: Literal["left", "right"] = "left" if heading in _LEFT else "right"
        shrinks = heading in ("model", "key", "what", "name")
        table.add_column(heading, justify=justify, no_wrap=not shrinks, overflow="ellipsis")
    for row in rows:
        table.add_row(*(_text(_cell(name, row.get(name)))[:60] for name in columns.values()))
    return table


def _cell(name: str, value: Any) -> Any:
    """A figure as it suits what it is of; texts as they are."""
    if not isinstance(value, int | float):
        return value
    match name:
        case "time":
            return time.strftime("%H:%M:%S", time.localtime(value))
        case "confidence" | "certainty":
            return f"{value:.0%}"
        case "cost" | "cost_over_one":
            return f"{value:,.4f}"
        case "expected_samples":
            return f"{value:,.0f}"
    return f"{value:,.2f}" if name == "seconds" or isinstance(value, float) else f"{value:,}"


def _text(value: Any, style: str = "") -> Text:
    """As it is, but nothing that a terminal would obey: paths are what clients write."""
    said = "" if value is None else str(value)
    return Text("".join(one if one.isprintable() else "·" for one in said), style)
