"""Requirements on the messages of errors for users.

`conftest.py` checks every error that a test expects with `pytest.raises` or that the command shows.
"""

from __future__ import annotations

import re

from ansor.errors import ArgumentError, OperatorError, UserError

# Imperatives and modal verbs: a remedy says what to do or what would be right.
INSTRUCTION = re.compile(
    r"\b(add|allow|ask|bind|calibrate|call|can be|choose|close|connect|copy|end|explain|export|free"
    r"|give|import|install|keep|leave|let|load|make|measure|must|name|needs?|open|pass|pip|put|quantise|read"
    r"|remove|repair|replace|report|return|save|say|see|set|start|take|try|tune|update|use|wait"
    r"|write)\b"
)
# A place: an argument with its value, something in quotes, or a kind of thing with its name.
PLACE = re.compile(
    r"\w=|'.+'|\b(block|blocks|called|cluster|compiler|compiled for|device|function|GPU|graph|input"
    r"|inputs|layer|loops over|model|module|network|node|operator|output|parameter|parameters|path"
    r"|PrimFunc|report|server|target|task|template|trace|tracker|weight|worker|import)\b|/|\.json"
)
ARGUMENT = re.compile(r"[A-Za-z_][\w.]*(\[.+\])*(, sample \d+)?")


def faults_of(error: UserError) -> list[str]:
    """The missing parts of an error's message."""
    found = []
    if not INSTRUCTION.search(error.remedy):
        found.append("the remedy gives no instruction")
    if isinstance(error, ArgumentError):
        if not ARGUMENT.fullmatch(error.argument):
            found.append("the argument is no name")
    # The importer names the operator and its layer where a converter raises.
    elif type(error) is not OperatorError and not PLACE.search(error.problem):
        found.append("the problem names neither an argument nor a place")
    if error.problem not in str(error) or error.remedy not in str(error):
        found.append("the text lacks the problem or the remedy")
    if "\n\n" in str(error) or str(error) != str(error).strip():
        found.append("the text has empty lines or spaces around it")
    return found


def check_message(error: BaseException | None) -> None:
    """Fails for an error for users whose message lacks something; other errors are not checked."""
    if isinstance(error, UserError):
        found = faults_of(error)
        assert not found, f"{type(error).__name__}: {error}: {', '.join(found)}"
