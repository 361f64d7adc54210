"""The manual pages and the shell completions, which are generated from the commands."""

import json
import os
import subprocess

import pytest

from service import HERALD, PATIENCE, ROOT


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True, **options).stdout


@pytest.fixture(scope="module")
def commands():
    """Each command's words, with its options and the names of its positional arguments."""

    def below(command, words):
        arguments = [each for each in command["arguments"] if each["shouldDisplay"]]
        options = [("--" if name["kind"] == "long" else "-") + name["name"] for each in arguments for name in each.get("names", [])]
        yield words, options, [each["valueName"] for each in arguments if each["kind"] == "positional"]
        for each in command.get("subcommands", []):
            if each["commandName"] != "help":
                yield from below(each, [*words, each["commandName"]])

    return list(below(json.loads(run(HERALD, "--experimental-dump-help"))["command"], ["herald"]))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("man1")
    run(ROOT / "scripts" / "manual", HERALD, folder)
    return folder


def test_each_command_has_a_page_with_all_its_options(commands, pages):
    assert len(commands) > 50
    assert sorted(path.name for path in pages.iterdir()) == sorted("-".join(words) + ".1" for words, _, _ in commands)
    for words, options, positional in commands:
        page = run("groff", "-Kutf8", "-man", "-Tutf8", "-P-cbou", "-rLL=400n", pages / ("-".join(words) + ".1"))
        lines = [line.strip() for line in page.replace("‐", "-").splitlines()]
        for name in options:
            assert any(line.startswith((name, f"-h, {name}")) for line in lines), f"{words}: {name} is not on its page"
        for name in positional:
            assert any(line.split("  ")[0].startswith(name) for line in lines), f"{words}: {name} is not on its page"


def test_groff_understands_each_line_of_the_pages(pages):
    result = subprocess.run(
        ["groff", "-Kutf8", "-man", "-Tutf8", "-ww", "-z", *sorted(pages.iterdir())], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_bash_completes_commands_and_options(tmp_path):
    script = tmp_path / "herald"
    script.write_text(run(HERALD, "--generate-completion-script", "bash"))
    ask = 'source "$1"; COMP_WORDS=(herald $2); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); COMP_LINE="herald $2"\n' \
        'COMP_POINT=${#COMP_LINE}; _herald herald "${COMP_WORDS[-1]}" ""; printf "%s\\n" "${COMPREPLY[@]}"'
    for typed, expected in (("ser", "serve"), ("serve --api-p", "--api-port"), ("device inv", "invite")):
        assert expected in run("bash", "--norc", "-c", ask, "bash", script, typed, env={"PATH": os.environ["PATH"]}).split()


@pytest.mark.parametrize(("shell", "check"), [("zsh", "-n"), ("fish", "--no-execute")])
def test_the_shell_reads_its_completions(shell, check, tmp_path):
    script = tmp_path / "completions"
    script.write_text(run(HERALD, "--generate-completion-script", shell))
    assert "invite" in script.read_text()
    run(shell, check, script)
