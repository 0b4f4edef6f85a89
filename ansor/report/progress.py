"""Progress of a search on a terminal: a live table, or plain lines where there is no terminal."""

from __future__ import annotations

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ansor.callbacks import Callback, Finish, Round, Start
from ansor.closing import Closing
from ansor.report.formatting import failures, shorten
from ansor.report.live_table import live_table
from ansor.report.round_text import round_line, start_line
from ansor.report.run_state import RunState

_MOST_ERROR = 200  # characters


class Progress(Callback, Closing):
    """Shows a running search; a context manager, so that the terminal is always restored.

    The table is drawn when a round has ended, and no process draws beside a measurement of this
    machine.

    Args:
        console: where to; standard error by default, so that output can be piped.
        free_lines: of a terminal, below and above the table.
    """

    def __init__(self, console: Console | None = None, free_lines: int = 8) -> None:
        self._free_lines = free_lines
        self._console = console or Console(stderr=True)
        self._state = RunState(Start((), None, None))
        self._live: Live | None = None

    def on_start(self, start: Start) -> None:
        """Opens the table."""
        self._state = RunState(start)
        self._say(start_line(start))
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
            self._draw(self._live)

    def on_round(self, done: Round) -> None:
        """Updates the table, or writes a line."""
        self._state.take(done)
        for kind, text in done.new_errors.items():
            self._say(f"first {kind} failure: {shorten(text, _MOST_ERROR)}")
        if done.recalled and done.recalled == done.measured:
            return  # an interrupted run has shown it
        if self._live is None:
            tasks = list(self._state.tasks)
            self._say(round_line(done, tasks.index(done.task.name) + 1, len(tasks)))
        else:
            self._draw(self._live)

    def on_finish(self, finish: Finish) -> None:
        """Closes the table."""
        self.close()
        failed = f" ({failures(finish.errors)} failed)" if finish.errors else ""
        self._say(
            f"search ended after {finish.elapsed_s:.0f} s and {finish.trials} programs{failed}: "
            f"{finish.reason}"
        )

    def on_stage(self, text: str) -> None:
        """Writes a line."""
        self._say(text)

    def close(self) -> None:
        """Leaves the terminal as it was; may be called twice."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _draw(self, live: Live) -> None:
        room = max(1, self._console.height - self._free_lines)
        live.update(live_table(self._state, self._console.width, room), refresh=True)

    def _say(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)
