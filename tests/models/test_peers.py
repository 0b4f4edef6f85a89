"""Which of a comparison's systems can run which built-in network."""

from __future__ import annotations

import pytest

from ansor.compare import systems
from ansor.compare.case import Case
from ansor.compare.systems import SYSTEMS
from ansor.models import model_names


@pytest.fixture(autouse=True)
def everything_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "find_spec", lambda name: object())


@pytest.mark.parametrize("name", model_names())
def test_channels_last_is_for_images_and_videos(name: str) -> None:
    reason = SYSTEMS["torch_channels_last"].absence(Case(name, "", 1))
    assert reason == ("not for inputs of 3 dimensions" if name == "bert_base" else "")


@pytest.mark.parametrize("system", sorted(set(SYSTEMS) - {"torch_channels_last"}))
def test_other_systems_take_any_input(system: str) -> None:
    assert SYSTEMS[system].absence(Case("bert_base", "", 1)) == ""
