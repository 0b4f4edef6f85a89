"""Networks for Arm, run by an emulator: `make check-arm` provides what these tests need."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import exported
import numpy as np
import pytest

import ansor
from ansor.frontend.deploy.export.write import RUNTIME_LIBRARIES
from ansor.models import build_model

RUNTIME = Path(os.environ.get("ANSOR_ARM_RUNTIME", "nowhere"))  # folder of TVM's libraries for Arm
COMPILER = "aarch64-linux-gnu-g++"
EMULATOR = "qemu-aarch64" if shutil.which("qemu-aarch64") else "qemu-aarch64-static"
CMAKE = (
    "-DCMAKE_SYSTEM_NAME=Linux",
    "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
    f"-DCMAKE_CXX_COMPILER={COMPILER}",
)

missing = [tool for tool in (COMPILER, EMULATOR, "cmake") if not shutil.which(tool)]
missing += [
    f"{name} in ANSOR_ARM_RUNTIME" for name in RUNTIME_LIBRARIES if not (RUNTIME / name).is_file()
]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that runs exported networks."""
    folder = tmp_path_factory.mktemp("arm") / "network"
    tuned = ansor.auto_schedule(exported.with_state(), "cortex-a72", trials=0)
    tuned.export(folder, runtime=RUNTIME)
    return exported.build(folder, *CMAKE)


def outputs(
    programs: Path, tuned: ansor.TunedModel, arrays: list[np.ndarray], folder: Path
) -> list[bytes]:
    """What the emulator computes on two threads, in each of two sessions."""
    tuned.export(folder / "network", runtime=RUNTIME)
    paths = exported.files_of(arrays, folder)
    words = ["--out", folder / "out", "--threads", "2", "--sessions", "2"]
    exported.run([EMULATOR, programs / "run", folder / "network", *paths, *words])
    found = [path.read_bytes() for path in sorted(folder.glob("out[0-9].bin"))]
    assert found == [path.read_bytes() for path in sorted(folder.glob("outs1-[0-9].bin"))]
    return found


@pytest.mark.parametrize("target", ["graviton2", "graviton3", "graviton4", "cortex-a72"])
def test_many_dtypes(programs: Path, target: str, tmp_path: Path) -> None:
    arrays = exported.inputs()
    tuned = ansor.auto_schedule(exported.many_dtypes(), target, trials=0)
    found = outputs(programs, tuned, arrays, tmp_path)
    exported.check_against_numpy(exported.arrays_of(found), arrays)


def test_resnet18(programs: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from ansor.models.torch_twin import torch_twin

    image = np.random.default_rng(0).standard_normal((1, 3, 224, 224), dtype=np.float32)
    tuned = ansor.auto_schedule("resnet18", "graviton3", trials=0, check_import=False)
    (found,) = outputs(programs, tuned, [image], tmp_path)
    with torch.no_grad():
        expected = torch_twin("resnet18", build_model("resnet18").params)(torch.from_numpy(image))
    expected = expected.numpy().reshape(-1)
    difference = np.abs(np.frombuffer(found, np.float32) - expected).max()
    assert difference <= 1e-4 * np.abs(expected).max()
