"""The sections of the page of measured figures, see `benchmarks.measured`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measured_comparisons import networks, operators, peak
from benchmarks.measured_exports import exports
from benchmarks.measured_faults import faults
from benchmarks.measured_low_precision import low_networks, low_operators, precision_auto
from benchmarks.measured_policies import search_policies
from benchmarks.measured_results import Entry
from benchmarks.measured_search import cost_model, policies, throughput
from benchmarks.measured_systems import (
    clusters,
    compiled_networks,
    deployments,
    schedules_by_hand,
)


@dataclass(frozen=True)
class Section:
    """One benchmark on the page.

    Attributes:
        heading: of the section.
        text: what is measured, and against what.
        columns: how the columns are read.
        files: names of the result files.
        command: repeats the benchmark.
        tables: makes the tables of the section from the runs in the files.
    """

    heading: str
    text: str
    columns: str
    files: tuple[str, ...]
    command: str
    tables: Callable[[Sequence[Entry]], str]

    def files_in(self, results: Path) -> list[str]:
        """The names of those files that are in a folder."""
        return [file for file in self.files if (results / file).is_file()]


SECTIONS = (
    Section(
        "Networks",
        "Each network is tuned from an empty database and then timed. The peers are ONNX Runtime, "
        "OpenVINO and PyTorch's Inductor.",
        "A ratio above 1 means that ansor is faster than the fastest peer. The run "
        "`ResNet-50 after ResNet-18` starts from the database of ResNet-18. The error is the "
        "largest difference from the untuned network, relative to its largest value. Runs before "
        "2026-11-22 timed each system in one turn per round; their ratio is that of the median "
        "latencies.",
        ("networks.json",),
        "python -m benchmarks.network --models resnet18 --minutes 7.6 "
        "--peers onnxruntime,openvino,inductor --rounds 3 --json FILE",
        networks,
    ),
    Section(
        "Operators",
        "Single operators of Ansor's suite and of OpEvo (`OPE`) are searched with 64 programs and "
        "timed. The peers are PyTorch, MetaSchedule with 128 programs, and ansor without trials.",
        "PyTorch's figure is for the faster of contiguous and channels-last tensors. "
        "The peak is the fp32 rate of the machine, measured after each turn. Rates count the "
        "operations of the definition; other algorithms, such as Winograd's `winograd4`, need "
        "fewer operations and can exceed the peak. `ansor without other algorithms` searches the "
        "definition alone. The last columns of the summary say when the search of ansor reaches "
        "the best latency of MetaSchedule. The time is the median share of MetaSchedule's tuning "
        "time. `(wrong)` marks a program whose result is wrong; its latency counts in the ratios. "
        "The error is the largest difference from NumPy's result, relative to its largest value. "
        "A file holds each operator once, from the newest run with the most peers.",
        (
            "operators_zen5.json",
            "operators_zen4.json",
            "operators_cascadelake.json",
            "operators_zen1.json",
        ),
        "python -m benchmarks.operators --ops all,OPE.0,OPE.1,OPE.2,OPE.3,OPE.4,OPE.5,OPE.6,OPE.7 "
        "--trials 64 --peers zero,torch,metaschedule:128 --rounds 3 --json FILE",
        operators,
    ),
    Section(
        "Networks in low precision",
        "Each network is tuned in bfloat16 or in int8. In bfloat16 its sums are float32, and its "
        "inputs and results are those of the original. In int8 ansor reads the ONNX file that ONNX "
        "Runtime quantised and runs itself.",
        "A ratio above 1 means that ansor is faster than the fastest peer in low precision; with "
        "precision auto, than the fastest peer. `OpenVINO by default` chooses its precision for "
        "the processor. PyTorch and Inductor run under autocast. The squared error is normalised: "
        "squares of the differences from PyTorch in float32 over squares of its results. The "
        "cosine is of the same results.",
        ("networks_low_precision.json",),
        "python -m benchmarks.network --models resnet50 --precision bfloat16 --minutes 10 "
        "--peers torch,onnxruntime,openvino,inductor --rounds 3 --json FILE",
        low_networks,
    ),
    Section(
        "Precision auto",
        "Each network is tuned with precision auto, in bfloat16 and in float32, for equal times. "
        "Then the three are timed in turns.",
        "The ratio is the latency with auto over the latency in the other precision, the median "
        "over the rounds. Below 1 auto is faster. A network without a line for float32 takes "
        "1.7 times as long or longer in it, see Networks.",
        ("precisions.json",),
        "python -m benchmarks.precisions --models resnet50,bert_base,mobilenet_v2 --minutes 8 "
        "--databases DIR --json FILE",
        precision_auto,
    ),
    Section(
        "Operators in low precision",
        "Products and convolutions have operands in bfloat16, or uint8 data and int8 weights. "
        "Sums are float32 and int32. Results are bfloat16 and int32. The peers are PyTorch, "
        "MetaSchedule, and ansor without trials.",
        "The peak is that of the fastest instruction for the dtype, on all threads, measured after "
        "each turn. PyTorch's form in int8 is oneDNN's quantised operator with a scale of 1. "
        "TVM's intrinsic for VNNI is repaired for MetaSchedule, because LLVM refuses its operands. "
        "MetaSchedule has no intrinsic for bfloat16.",
        ("operators_low_precision.json",),
        "python -m benchmarks.operators --ops GMM.3,C2D.1,C2D.2 --dtypes bfloat16,int8 "
        "--trials 64 --peers zero,torch,metaschedule:128 --rounds 3 --json FILE",
        low_operators,
    ),
    Section(
        "Peak and duration of rounds",
        "A matrix product (`GMM.3`) and two convolutions are compared with the measured fp32 peak "
        "of the machine.",
        "A search of 64 programs measures them in four rounds of 16. The ends of the rounds are "
        "seconds from the call. The first round includes the start of the workers. The share of "
        "the peak exceeds 100 % where another algorithm needs fewer operations.",
        ("peak.json",),
        "python -m benchmarks.operators --ops GMM.3,C2D.1,C2D.2 --trials 64 --peers zero,direct "
        "--rounds 10 --json FILE",
        peak,
    ),
    Section(
        "Cost model",
        "The cost models rank 200 random legal programs of each operator. The measured latencies "
        "are the reference.",
        "`best of 5` is the fastest of the five best-ranked programs, relative to the fastest of "
        "all. The draft is the analytic model without any measurement. The trees are trained on "
        "one half of the programs and judged on the other half, or trained on the other operators. "
        "The constants of the draft are not fitted to programs of these seeds.",
        ("cost_model.json",),
        "python -m benchmarks.cost_model --seed 61 --json FILE",
        cost_model,
    ),
    Section(
        "Cost model in low precision",
        "The cost models rank 200 random legal programs of each operator in bfloat16 and int8.",
        "The columns are those of the section before.",
        ("cost_model_low_precision.json",),
        "python -m benchmarks.cost_model --ops conv2d,matmul,batch_matmul,conv1d "
        "--dtypes bfloat16,int8 --programs 200 --json FILE",
        cost_model,
    ),
    Section(
        "Speed of the search",
        "The table gives programs per second of each part of the search, for one convolution "
        "(56×56×64 to 64, 3×3).",
        "Lowering and building run in one process, and measuring runs on all cores. "
        "All other parts run on one core. Of a trial beyond its build and its runs, 50 per second "
        "are 20 ms of messages, arguments and known work for each.",
        ("throughput.json",),
        "python -m benchmarks.throughput --json FILE",
        throughput,
    ),
    Section(
        "Parts of the search",
        "Each policy leaves out one part of the search, and `full` leaves out none. The searches "
        "of an operator share the measurements.",
        "Latencies are medians over the searches of five seeds. The best programs of all searches "
        "are timed again in turns.",
        ("search.json",),
        "python -m benchmarks.search --ops C2D.3,TBG.1 "
        "--policies full,no-crossover,no-elite,no-descent --trials 128 --seeds 5 --replay "
        "--json FILE",
        policies,
    ),
    Section(
        "Search policies",
        "The policies of `ansor.policy.registry` search the same operators with equal budgets on "
        "the same device. A surrogate answers with the prediction of trees that were fitted to "
        "measurements of the operator. With real measurements the best programs are timed again. "
        "The enumeration `grid` has one search, because it is the same for every seed.",
        "The ratio is the median latency over that of the first policy, the geometric mean over "
        "the operators. Above 1 the first policy is faster. A policy without a program within the "
        "time limit on some operator has no ratio. The spread is the distance of the quartiles "
        "over the median. A search is near if it is within 5 % of the best of all "
        "searches. Half of the searches are near after the trials in the last column. The "
        "`best of the others` is the fastest other policy on each operator. Seconds on surrogates "
        "are the processor time of the search with the predicted times of builds and runs.",
        ("policies.json", "policies_measured.json"),
        "python -m benchmarks.policies --ops OPE.0,OPE.1,OPE.2,OPE.3,OPE.4,OPE.5,OPE.6,OPE.7,C2D.2,"
        "GMM.3 --trials 64,128,512 --seeds 5 --plot docs/policies.svg --json FILE",
        search_policies,
    ),
    Section(
        "Schedules written by hand",
        "Templates with knobs are tuned by several policies, and functions of a schedule by the "
        "default policy. Derived sketches and MetaSchedule search the same operators with as many "
        "programs. The winners are timed again in turns.",
        "Above 1 the derived sketches are faster. The error is the largest difference from "
        "NumPy's result, relative to its largest value.",
        ("templates.json", "templates_metaschedule.json"),
        "python -m benchmarks.templates --ops C2D.2,GMM.2 "
        "--policies evolutionary,ga,opevo,xgb-sa --trials 200 --json FILE",
        schedules_by_hand,
    ),
    Section(
        "Networks in plain TVM",
        "A tuned network and its exports take turns. Plain TVM applies the exported records and "
        "compiles, without ansor. Final functions stand as ansor compiles them. Traces hold the "
        "primitives of the schedule alone, see [MetaSchedule](metaschedule.md).",
        "Above 1 ansor is faster, within turns. The error is that of the first outputs.",
        ("plain_tvm.json", "plain_tvm_searched.json"),
        "python -m benchmarks.plain_tvm --model resnet18 --trials 400 --json FILE",
        exports,
    ),
    Section(
        "Networks under torch.compile",
        "Networks of torchvision and transformers run under `torch.compile` with the backend "
        "`ansor` and with PyTorch's Inductor, and as networks of `auto_schedule`. All forms of "
        "ansor have the programs that the draft chooses, without a search. The system "
        "`ansor graphs alone` calls the compiled graphs without TorchDynamo. Its guards are part "
        "of a call with every backend. The system `ansor frozen` has the option `freezing` and no "
        "guards on modules.",
        "Above 1 `auto_schedule` is faster, within turns. The error is the largest difference "
        "from PyTorch without a compiler, relative to its largest value.",
        ("torch_compile.json", "torch_compile_vit.json", "torch_compile_frozen.json"),
        "python -m benchmarks.torch_compile --trials 0 --json FILE",
        compiled_networks,
    ),
    Section(
        "Networks in C++",
        "An exported network runs in a C++ program and in Python, in turns.",
        "Below 1 the C++ program is faster, median of the ratios of the turns. Results are equal "
        "if all their bits are.",
        ("deployment.json",),
        "python -m benchmarks.deployment --model resnet18 --json FILE",
        deployments,
    ),
    Section(
        "Records of similar operators",
        "A search can begin with the best program of a similar operator in the database. The "
        "policy `no-siblings` ignores these records.",
        "`DEP.1 after DEP.0` means that the database holds a search of `DEP.0`.",
        ("siblings.json",),
        "python -m benchmarks.search --ops DEP.1 --after DEP.0 --policies full,no-siblings "
        "--trials 32 --seeds 5 --replay --json FILE",
        policies,
    ),
    Section(
        "Clusters",
        "Local clusters of Ray have nodes that wait instead of measuring, because they share the "
        "cores of one machine. A simulation with recorded times stands for larger clusters.",
        "`busy` is the share of the time in which nodes measure, or wait instead.",
        ("cluster.json",),
        "python -m benchmarks.cluster --json FILE",
        clusters,
    ),
    Section(
        "Injected faults",
        "Runs are injected with faults, and each requirement is checked.",
        "Bad candidates do what no program should do in a real worker process. A killed run is a "
        "process group or a parent that gets SIGKILL at random moments; a recorded result is a "
        "complete line of its log.",
        ("faults.json",),
        "python -m benchmarks.faults --scale full --json FILE",
        faults,
    ),
)
