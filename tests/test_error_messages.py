"""Errors for users name the argument or the place, the value and the remedy."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest
from click.testing import CliRunner
from error_messages import faults_of

import ansor
from ansor.cli.main import main
from ansor.diagnosis import doctor
from ansor.errors import (
    ArgumentError,
    DatabaseError,
    MeasureError,
    OperatorError,
    TemplateMismatchError,
    UnsupportedError,
    UserError,
)

# No user causes these: a candidate that fails becomes a record, and a system to compare with that
# fails becomes a row of a table.
INTERNAL = {"UserError", "LoweringError", "StageError", "ChildError"}
KINDS = (UnsupportedError, OperatorError, TemplateMismatchError, MeasureError, DatabaseError)


def test_all_other_errors_of_the_package_have_a_remedy() -> None:
    files = Path(ansor.__file__).parent.rglob("*.py")
    classes = [node for f in files for node in ast.walk(ast.parse(f.read_text())) if is_class(node)]
    assert {node.name for node in classes if derives(node, "AnsorError")} == INTERNAL


def is_class(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef)


def derives(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.ClassDef) and name in map(ast.unparse, node.bases)


def test_a_message_has_the_problem_and_the_remedy() -> None:
    assert str(UnsupportedError("block a: scans", "write it plainly")) == (
        "block a: scans; write it plainly"
    )
    assert str(ArgumentError("trials", -1, "must be positive")) == "trials=-1: must be positive"
    assert OperatorError("its mode is unknown").remedy.startswith("replace the operator")


@pytest.mark.parametrize(
    "error",
    [
        ArgumentError("trials", -1, "must be positive"),
        *(kind("block a", "use b") for kind in KINDS),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_pass_from_process_to_process(error: UserError) -> None:
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert found.remedy == error.remedy


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (UnsupportedError("block a: scans", "write it plainly"), None),
        (UnsupportedError("block a: scans", "it is not possible"), "instruction"),
        (UnsupportedError("scans", "write it plainly"), "place"),
        (OperatorError("it scans"), None),
        (ArgumentError("trials", -1, "must be positive"), None),
        (ArgumentError("number of trials", -1, "must be positive"), "name"),
        (ArgumentError("trials", -1, "wrong"), "instruction"),
        (DatabaseError("path='a'", "give another \n\n"), "empty lines"),
    ],
)
def test_faults_of_messages_are_found(error: UserError, fault: str | None) -> None:
    found = faults_of(error)
    assert (found == []) if fault is None else (len(found) == 1 and fault in found[0])


def test_an_expected_error_with_a_bad_message_fails_a_test() -> None:
    expected = pytest.raises(AssertionError, match="gives no instruction")
    with expected, pytest.raises(UnsupportedError):
        raise UnsupportedError("block a: scans", "sorry")


def test_a_bad_message_of_the_command_fails_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**given: object) -> None:
        raise ArgumentError("threads", 0, "wrong")

    monkeypatch.setattr(doctor, "doctor", fail)
    result = CliRunner().invoke(main, ["doctor"])
    assert isinstance(result.exception, AssertionError)
