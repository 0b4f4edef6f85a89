"""`python -m tests.package [FOLDER]`: builds the wheel and the source archive, and tries each.

Each archive is installed into an empty virtual environment in FOLDER, by default build/package. The
commands there must succeed, and the installed package must have all files of the repository's.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODEL = "matmul:rows=32,columns=32,depth=32"
PYTHON_CHECK = """
import numpy, ansor
from ansor import workloads
product = list(workloads.build("matmul", rows=32, columns=32, depth=32).tensors)
tuned = ansor.auto_schedule(product, trials=2)
ones = numpy.ones((32, 32), "float32")
assert (numpy.asarray(tuned(ones, ones)) == 32).all()
loaded = ansor.load("out/model.ansor")
assert (numpy.asarray(loaded(ones, ones)) == 32).all()
"""
COMMANDS = (
    ("ansor", "--version"),
    ("ansor", "completion", "bash"),
    ("ansor", "show", "models"),
    ("ansor", "show", "task", MODEL),
    ("ansor", "tune", MODEL, "--trials", "4", "--preset", "quick", "--database", "db.sqlite"),
    ("ansor", "show", "best", "db.sqlite"),
    ("ansor", "show", "assembly", "ansor-out/model.ansor"),
    ("ansor", "export", "ansor-out/model.ansor", "exported"),
    ("ansor", "tune", MODEL, "--trials", "0", "--database", "db.sqlite", "--out", "out"),
    ("python", "-c", PYTHON_CHECK),
)


def main(folder: Path) -> None:
    """Builds and tries both archives.

    Raises:
        SystemExit: a command failed, or a file is missing.
    """
    shutil.rmtree(folder, ignore_errors=True)
    archives = build(folder / "dist")
    for archive in archives:
        print(f"{archive.name}:", flush=True)
        try_archive(archive, folder / archive.suffix.lstrip("."))
    print(f"both archives in {folder / 'dist'} are complete and run")


def build(folder: Path) -> list[Path]:
    """The wheel and the source archive of what git tracks."""
    source = folder.parent / "source"
    for name in tracked("."):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    run([sys.executable, "-m", "build", "--outdir", str(folder), str(source)], ROOT)
    return [*folder.glob("*.whl"), *folder.glob("*.tar.gz")]


def try_archive(archive: Path, folder: Path) -> None:
    """Installs an archive into an empty environment and runs the commands there."""
    environment, work = folder / "venv", folder / "work"
    work.mkdir(parents=True)
    run([sys.executable, "-m", "venv", str(environment)], work)
    programs = environment / "bin"
    run([str(programs / "pip"), "install", "--quiet", str(archive)], work)
    check_files(next(environment.glob("lib/python*/site-packages/ansor")))
    for program, *arguments in COMMANDS:
        print(f"  {program} {' '.join(arguments).strip().splitlines()[0]}", flush=True)
        run([str(programs / program), *arguments], work)


def check_files(installed: Path) -> None:
    """Raises SystemExit unless the installed package has each file that git tracks."""
    missing = [name for name in tracked("ansor") if not (installed.parent / name).is_file()]
    if missing:
        raise SystemExit(f"{installed} lacks {', '.join(missing)}")


def tracked(folder: str) -> list[str]:
    """The files of a folder of the repository, without those of the tests and benchmarks."""
    listed = ["git", "ls-files", folder, ":!tests", ":!benchmarks", ":!docs"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def run(command: Sequence[str], folder: Path) -> None:
    """Runs a command in a folder.

    Raises:
        SystemExit: it fails; the message has its output.
    """
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")


if __name__ == "__main__":
    main(Path(*sys.argv[1:2] or [ROOT / "build" / "package"]).absolute())
