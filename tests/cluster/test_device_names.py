"""Texts that name a device, in Python and on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import ansor
from ansor.cli.main import main
from ansor.errors import ArgumentError
from ansor.run.arguments import check_device, cluster_address


@pytest.mark.parametrize(
    ("device", "address"),
    [("ray", "auto"), ("ray:auto", "auto"), ("ray:head:6379", "head:6379")],
)
def test_a_cluster_has_an_address(device: str, address: str) -> None:
    assert cluster_address(device) == address


@pytest.mark.parametrize("device", ["", "cpu", "ray:", "rays"])
def test_other_texts_name_no_device(device: str) -> None:
    with pytest.raises(ArgumentError, match="ray:HOST:PORT"):
        check_device(device)
    with pytest.raises(ArgumentError, match="device="):
        ansor.auto_schedule("resnet18", trials=1, device=device)


def test_without_ray_the_error_says_how_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ansor.run.measuring.find_spec", lambda _: None)
    with pytest.raises(ArgumentError, match=r"pip install 'ansor\[ray\]'"):
        ansor.auto_schedule("resnet18", trials=1, device="ray")
    arguments = ["tune", "resnet18", "--trials", "1", "--cluster", "auto"]
    result = CliRunner().invoke(main, [*arguments, "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "pip install 'ansor[ray]'" in result.output
