"""The page docs/cli.md: what typer makes of the help, with whole lists of commands, and each option told once."""

import re


def readable(page: str) -> str:
    """The page with the commands in its lists as links, and options that an earlier command has too by name alone.

    >>> ask = "* `ask`: Ask a...\\n\\n## `suffice ask`\\n\\nAsk a question.\\n\\n* `--model M`: Which.\\n"
    >>> run = "\\n## `suffice run`\\n\\nRun.\\n\\n* `--model M`: Which.\\n* `--out F`: Where.\\n"
    >>> print(readable(ask + run), end="")
    * [`ask`](#suffice-ask): Ask a question.
    <BLANKLINE>
    ## `suffice ask`
    <BLANKLINE>
    Ask a question.
    <BLANKLINE>
    * `--model M`: Which.
    <BLANKLINE>
    ## `suffice run`
    <BLANKLINE>
    Run.
    <BLANKLINE>
    * `--out F`: Where.
    <BLANKLINE>
    As in [`ask`](#suffice-ask): `--model`.
    """
    about = dict(re.findall(r"^#+ `suffice (.+)`\n\n(.+)$", page, re.MULTILINE))
    first: dict[str, str] = {}
    """The command that has an option first, by the option's line."""
    command = ""
    again: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in [*page.splitlines(), "#"]:
        if line.startswith("#"):
            lines += ["", *_again(again)] if again and lines[-1] else _again(again)
            again = {}
        if heading := re.match(r"#+ `suffice (.+)`", line):
            command = heading[1]
        item = re.match(r"\* `(\w+)`: ", line)
        name = f"{command} {item[1]}".strip() if item else ""
        option = re.match(r"\* `(--[\w-]+)", line)
        if item and name in about:
            line = f"* [`{item[1]}`](#{_anchor(name)}): {about[name]}"
        elif option and first.setdefault(line, command) != command:
            again.setdefault(first[line], []).append(f"`{option[1]}`")
            continue
        lines.append(line)
    return "\n".join(lines[:-1]).rstrip() + "\n"


def _again(options: dict[str, list[str]]) -> list[str]:
    """What is said of options that were told with others before; of help nothing, for all have it."""
    named = {command: [one for one in names if one != "`--help`"] for command, names in options.items()}
    told = [f"as in [`{one}`](#{_anchor(one)}): {', '.join(names)}" for one, names in named.items() if one and names]
    sentence = "; ".join(told)
    return [f"{sentence[:1].upper()}{sentence[1:]}.", ""] if told else []


def _anchor(command: str) -> str:
    return f"suffice-{command.replace(' ', '-')}"
