"""The `nmt-align` command: a group that imports a command's module only when it is called."""

from __future__ import annotations

import signal
import sys
from importlib import import_module

import click

from align import __version__
from data.errors import AlignError, unknown_name

COMMANDS = {
    "agree": ("eval.agree_command:agree", "Compare the maps of all methods with each other."),
    "batch": ("align.batch_command:batch", "Align whole corpora: stopped, resumed, spread over machines."),
    "choose": ("align.choose_command:choose_command", "Choose a method or layer without gold, by both directions."),
    "compare": ("eval.compare_command:compare", "Rank every method and layer of a model by AER against gold."),
    "convert": ("data.commands:convert", "Convert alignment files between formats."),
    "demo": ("eval.demo_command:demo", "Compare methods on the text and models that ship with the package."),
    "faithfulness": (
        "eval.faithfulness_command:faithfulness",
        "Test by erasure which method names what the model used.",
    ),
    "interactions": (
        "eval.interactions_command:interactions",
        "Tell which source words act on a target word together.",
    ),
    "known-answers": ("eval.pointing_command:known_answers", "Test methods on causes planted in the demo's language."),
    "lexicon": ("align.lexicon_commands:lexicon", "Make a bilingual lexicon from text and its alignments."),
    "lexicon-score": ("eval.lexicon_commands:lexicon_score", "Score lexicons against a reference or gold alignments."),
    "methods": ("align.methods_command:methods", "List the methods, or tell what one of them measures."),
    "plot": ("eval.plot_command:plot", "Draw the soft alignment of a pair as PNG or PDF."),
    "pointing": ("eval.pointing_command:pointing", "Test methods on causes that minimal pairs or hybrids show."),
    "run": ("align.run_command:run", "Align sentence pairs with one method."),
    "sanity": ("eval.sanity.command:sanity", "Check attention, and the methods, before reading them."),
    "score": ("eval.commands:score", "Score alignment files against gold: AER, precision, recall, F."),
    "shares": ("align.shares_command:shares", "Tell how much of each target word comes from the source."),
    "show": ("eval.show_command:show", "Print the alignment of a pair in the terminal."),
    "symmetrize": ("align.commands:symmetrize", "Combine the alignments of both directions."),
    "view": ("eval.view_command:view", "Make a page to look at alignments."),
}


class LazyGroup(click.Group):
    """A group whose commands live in `COMMANDS` and are imported on use, so that `--help` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}:{attribute} is not a click command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            raise unknown_name("command", args[0], COMMANDS)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(COMMANDS.items())])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="nmt-align")
def cli() -> None:
    """Word alignments from neural machine translation models, by attention and by saliency."""


def main() -> None:
    """Run the command. Exit codes: 0 done, 1 data or model error, 2 usage, 130 and 143 ended by a signal."""
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(_run())


def _terminate(number: int, frame: object) -> None:
    """End by an exception, so that temporary files go."""
    raise SystemExit(128 + number)


def _run() -> int:
    try:
        result = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("Interrupted.", err=True)
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except AlignError as error:
        click.echo(f"Error: {error}", err=True)
        return error.exit_code
    except BrokenPipeError:
        # The reader went away (`| head`): quiet, and no second error when Python flushes at exit.
        sys.stdout = None
        return 1
    return result if isinstance(result, int) else 0
