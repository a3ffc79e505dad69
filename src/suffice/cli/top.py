"""`suffice top`: what a gateway does, in a terminal, as it does it."""

import http.client
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from suffice import OptionError, SufficeError
from suffice.cli.app import app, new_console, write_json
from suffice.live.targets import whole_url

PATIENCE_SECONDS = 5.0
MOST_BYTES = 16 << 20
_HEADINGS = {
    "confidence": "confi-\ndence",
    "certainty": "cer-\ntainty",
    "in flight": "in\nflight",
    "tokens saved": "tokens\nsaved",
}
"""What is broken so that all fits 80 columns."""
_RECENT = ("time", "what", "status", "samples", "rounds", "saved", "tokens", "confidence", "certainty", "seconds")


class GoneError(SufficeError):
    """A gateway does not tell its figures, in a sentence."""


class Gateway:
    """A gateway over one connection, which stays with the same of its processes."""

    def __init__(self, url: str, key: str | None) -> None:
        parts = urlsplit(whole_url(url, "url"))
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self.where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._path = parts.path.rstrip("/").removesuffix("/v1")
        self._connection = kind(parts.hostname or "", parts.port, timeout=PATIENCE_SECONDS)
        self._tells_usage = True
        self._headers = {"authorization": f"Bearer {key}"} if key else {}

    def figures(self) -> dict[str, Any]:
        """What it tells, with the usage of keys where it lets us see that."""
        status, told = self._get("/v1/suffice/recent")
        if status == 401:
            raise GoneError(f"{self.where} asks for a key, and was shown none of its own: --key-env names its variable")
        if status != 200 or not isinstance(told.get("totals"), dict):
            raise GoneError(f"{self.where} answers, and not as a gateway of suffice does")
        if self._tells_usage:
            status, usage = self._get("/v1/suffice/usage")
            self._tells_usage = status == 200 and isinstance(usage.get("keys"), list)
        _, audits = self._get("/v1/suffice/audits")
        return told | {"audits": audits} | ({"usage": usage} if self._tells_usage else {})

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
    key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="The variable with a key, where the gateway asks for one.")
    ] = None,
    interval: Annotated[float, typer.Option(help="How many seconds are between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once; so it is where the output is no terminal.")] = False,
    as_json: Annotated[
        Path | None,
        typer.Option("--json", metavar="[FILE]", help="Write all that is told, once, as JSON; without FILE, print it."),
    ] = None,
) -> None:
    """Watch a gateway: what it saves, what is under way, its upstreams, and the usage of keys for the operator."""
    if not 0.1 <= interval <= 3600:
        raise OptionError(f"must be between 0.1 and 3600, not {interval:g}", "interval")
    if key_env and not os.environ.get(key_env):
        raise OptionError(f"{key_env}: the variable is not set; put the key into it", "key_env")
    with closing(Gateway(url, os.environ[key_env].strip() if key_env else None)) as gateway:
        told = gateway.figures()
        if as_json:
            write_json(as_json, json.dumps(told) + "\n")
        elif once or not sys.stdout.isatty():
            new_console().print(screen(gateway.where, told))
        else:
            follow(gateway, told, Console(markup=False, emoji=False), lambda: time.sleep(interval))


def follow(gateway: Gateway, told: dict[str, Any], console: Console, wait: Callable[[], None]) -> None:
    """Look again and again until Ctrl-C; a gateway that is gone may come back."""
    gone = ""
    with Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        try:
            while True:
                rows = max(3, console.height - 16)
                live.update(screen(gateway.where, told, rows, gone), refresh=True)
                wait()
                try:
                    told, gone = gateway.figures(), ""
                except GoneError as error:
                    gone = f"{error}; these are the last figures"
        except KeyboardInterrupt:
            pass


def screen(where: str, told: dict[str, Any], rows: int = 20, gone: str = "") -> Group:
    """All of it, one below the other."""
    parts: list[Any] = [_text(gone, "bold red") if gone else _heading(where, told), _totals(told), _upstreams(told)]
    if "usage" in told:
        parts.append(_usage(told["usage"]["keys"]))
    proved = told.get("audits", {}).get("all", {})
    if proved.get("audits"):
        parts.append(_text(proved.get("said")))
    under_way = told.get("under_way", [])[:rows]
    return Group(*parts, _recent(under_way, told.get("recent", [])[: rows - len(under_way)]))


def _heading(where: str, told: dict[str, Any]) -> Text:
    workers = told.get("workers", 1)
    of = f", one of {workers} processes" if isinstance(workers, int) and workers > 1 else ""
    return _text(f"suffice at {where}{of}, up for {_number(told.get('seconds'))} s", "bold")


def _totals(told: dict[str, Any]) -> Table:
    totals = told["totals"]
    full = totals.get("samples", 0) + totals.get("samples_saved", 0)
    share = f" ({totals['samples_saved'] / full:.0%})" if full else ""
    flying = sum(one.get("in_flight", 0) for one in told.get("upstreams", []))
    named = ("requests", "votes", "samples", "tokens")
    cells = {name: _number(totals.get(name)) for name in named}
    cells["samples saved"] = _number(totals.get("samples_saved")) + share
    cells["tokens saved"] = f"about {_number(totals.get('tokens_saved'))}"
    return _table("", [*cells, "in flight"], [[*cells.values(), flying]])


def _upstreams(told: dict[str, Any]) -> Table:
    rows = [
        [one.get("name"), "answers" if one.get("healthy") else "set aside", one.get("in_flight")]
        for one in told.get("upstreams", [])
    ]
    return _table("Upstreams", ["name", "health", "in flight"], rows)


def _usage(keys: list[dict[str, Any]]) -> Table:
    columns = ("requests", "samples", "tokens")
    rows = [[one.get("name"), *(_number(one.get(name)) for name in columns), _money(one.get("cost"))] for one in keys]
    return _table("Keys", ["name", *columns, "cost"], rows)


def _recent(under_way: list[dict[str, Any]], entries: list[dict[str, Any]]) -> Table:
    rows = [
        [
            "now",
            f"vote, {one.get('controller')}" if one.get("kind") == "vote" else one.get("path"),
            "",
            f"{one.get('arrived')}/{one.get('asked')}" if "asked" in one else "",
            *("", "", _number(one.get("tokens")), "", "", f"{one.get('seconds', 0):.2f}"),
        ]
        for one in under_way
    ]
    rows += [
        [
            time.strftime("%H:%M:%S", time.localtime(one.get("time", 0))),
            f"vote, {one.get('controller')}" if one.get("kind") == "vote" else f"{one.get('kind')} {one.get('path')}",
            one.get("status"),
            *(_number(one.get(name)) for name in ("samples", "rounds", "samples_saved", "tokens")),
            *("" if one.get(name) is None else f"{one[name]:.0%}" for name in ("confidence", "certainty")),
            f"{one.get('seconds', 0):.2f}",
        ]
        for one in entries
    ]
    return _table("Recent requests", _RECENT, rows)


def _table(title: str, columns: Any, rows: list[list[Any]]) -> Table:
    table = Table(title=title or None, title_justify="left", box=None, padding=(0, 1, 0, 0))
    for column in columns:
        is_name = column in ("name", "what", "health")
        justify: Literal["left", "right"] = "left" if is_name or column == "time" else "right"
        table.add_column(_HEADINGS.get(column, column), justify=justify, no_wrap=not is_name, overflow="fold")
    for row in rows:
        table.add_row(*(_text(cell)[:60] for cell in row))
    return table


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else ""


def _money(value: Any) -> str:
    return f"{value:,.4f}" if isinstance(value, int | float) else ""


def _text(value: Any, style: str = "") -> Text:
    """As it is, but nothing that a terminal would obey: paths are what clients write."""
    said = "" if value is None else str(value)
    return Text("".join(one if one.isprintable() else "·" for one in said), style)
