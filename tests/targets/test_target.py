"""Targets as users write them, and their canonical text."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tvm.target import Target, codegen

from ansor.errors import ArgumentError, UnsupportedError
from ansor.targets.cuda.detect import read_gpu
from ansor.targets.host.threads import available_cores
from ansor.targets.target import resolve_target, target_text


def test_native_is_this_machine() -> None:
    target = resolve_target("native")
    assert target.kind.name == "llvm"
    assert target.attrs["mcpu"] == codegen.llvm_get_system_cpu()
    assert target.attrs["num-cores"] == available_cores()


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ("llvm -mcpu=skylake-avx512", {"mcpu": "skylake-avx512"}),
        ("llvm --mcpu=haswell -num-cores=4", {"mcpu": "haswell", "num-cores": 4}),
        ("llvm -mcpu=haswell -mattr=-avx2,+fma", {"mcpu": "haswell", "mattr": ["-avx2", "+fma"]}),
        ('{"kind": "llvm", "mcpu": "znver3"}', {"mcpu": "znver3"}),
        (
            "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72",
            {"mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72"},
        ),
    ],
)
def test_options(text: str, attributes: dict[str, object]) -> None:
    found = resolve_target(text).attrs
    assert {key: _plain(found[key]) for key in attributes} == attributes


def _plain(value: object) -> object:
    return value if isinstance(value, str | int) else list(value)


def test_llvm_alone_and_native_as_a_processor() -> None:
    assert "mcpu" not in resolve_target("llvm").attrs
    assert resolve_target("llvm -mcpu=native").attrs["mcpu"] == codegen.llvm_get_system_cpu()


def test_a_target_passes_through() -> None:
    target = Target({"kind": "llvm", "mcpu": "haswell"})
    assert resolve_target(target) == target


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("llvm -mcpu=pentium9", "LLVM knows no processor 'pentium9'"),
        ("lvm", '"lvm" is not defined.*say "native"'),
        ("llvm -cpu=haswell", "cpu.*say"),
        ("llvm mcpu=haswell", "say"),
        ("llvm -mcpu haswell", "'-mcpu' is not of the form -option=value"),
        ("llvm -num-cores=all", "say"),
        ("llvm -mcpu='haswell", "say"),
        ('{"kind": "llvm"', "JSON"),
        ("", "say"),
        (7, "say"),
        (None, "say"),
    ],
)
def test_a_bad_target_is_named_with_a_remedy(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        resolve_target(text)
    assert caught.value.argument == "target"


def test_a_bad_processor_of_a_target_object_is_found_too() -> None:
    with pytest.raises(ArgumentError, match="pentium9"):
        resolve_target(Target({"kind": "llvm", "mcpu": "pentium9"}))


@pytest.mark.parametrize("text", ["c", "c -mcpu=haswell", '{"kind": "c"}'])
def test_other_kinds_are_not_supported_yet(text: str) -> None:
    with pytest.raises(UnsupportedError, match="target 'c'"):
        resolve_target(text)


def test_the_text_is_canonical() -> None:
    one = resolve_target("llvm -mcpu=haswell -mattr=+fma,-avx2 -num-cores=8")
    other = resolve_target("llvm -num-cores=2 -mattr=-avx2,+fma -mcpu=haswell")
    assert target_text(one, 2) == target_text(other, 2)
    assert target_text(one, 2) != target_text(one, 4)


def test_tvm_reads_the_text() -> None:
    text = target_text(resolve_target("llvm -mcpu=haswell"), 3)
    assert dict(Target(text).attrs) == {"mcpu": "haswell", "num-cores": 3}
    assert target_text(resolve_target(text), 3) == text


def test_only_a_foreign_triple_is_part_of_the_text() -> None:
    assert "mtriple" not in json.loads(target_text(resolve_target("llvm"), 1))
    arm = resolve_target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
    assert json.loads(target_text(arm, 1))["mtriple"] == "aarch64-linux-gnu"


@pytest.mark.parametrize(
    "spelled",
    [
        "cuda -arch=sm_90 -tf32",
        "cuda --tf32 -arch=sm_90",
        '{"kind":"cuda","arch":"sm_90","keys":["cuda","gpu","tf32"]}',
    ],
)
def test_tf32_is_part_of_a_gpus_text(spelled: str) -> None:
    text = '{"arch":"sm_90","keys":["cuda","gpu","tf32"],"kind":"cuda"}'
    assert target_text(resolve_target(spelled), 2) == text
    assert target_text(resolve_target(text), 2) == text
    assert read_gpu(resolve_target(spelled)).multiplies("float32")
    assert not read_gpu(resolve_target("cuda -arch=sm_90")).multiplies("float32")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cuda -arch=sm_75 -tf32", "target='cuda -arch=sm_75 -tf32': .*sm_75 know no tf32.*sm_80"),
        ("cuda -arch=sm_90 -tf16", "'-tf16' is not of the form -option=value"),
        ("llvm -tf32", "'-tf32' is not of the form -option=value"),
    ],
)
def test_tf32_where_there_is_none(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        resolve_target(text)


_PRINT = """
from ansor.targets.cuda.detect import read_gpu
from ansor.targets.target import resolve_target, target_text
print(target_text(resolve_target("llvm -mcpu=haswell -mattr=+fma,-avx2"), 2))
"""


def test_the_text_is_the_same_in_another_process() -> None:
    environment = {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", _PRINT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    own = target_text(resolve_target("llvm -mcpu=haswell -mattr=+fma,-avx2"), 2)
    assert done.stdout.strip() == own
