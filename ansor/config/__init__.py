"""Limits, sizes and rates, with unit and source, in frozen dataclasses.

The parameters of machines and the constants of the drafts are in `ansor.targets`.

Read `TuneConfig` first: it nests the settings of users. `QUICK` and `FULL` are the presets. The
other constants in capitals hold for every run.
"""

from __future__ import annotations

from ansor.config.analysis import (
    DAG,
    FEATURES,
    NEIGHBOURS,
    DagConfig,
    FeatureConfig,
    NeighbourConfig,
)
from ansor.config.checking import CHECK, COMPARE, CheckConfig, CompareConfig
from ansor.config.cluster import CLUSTER, ClusterConfig
from ansor.config.codegen import PREFETCH, WORK_STEALING, PrefetchConfig, WorkStealingConfig
from ansor.config.diagnosis import DOCTOR, DoctorConfig
from ansor.config.explaining import EXPLAIN, ExplainConfig
from ansor.config.files import DATABASE, STORAGE, DatabaseConfig, StorageConfig
from ansor.config.importing import (
    GRAPH,
    IMPORTS,
    PRECISION,
    GraphConfig,
    ImportConfig,
    PrecisionConfig,
)
from ansor.config.measuring import RPC, WORKERS, MeasureConfig, RpcConfig, WorkerConfig
from ansor.config.quantizing import QUANTIZATION, QuantizationConfig
from ansor.config.search_space import GpuSketchConfig, SketchConfig
from ansor.config.templates import TEMPLATES, TemplateConfig
from ansor.config.tuning import (
    FULL,
    QUICK,
    CostModelConfig,
    EvolutionConfig,
    SchedulerConfig,
    TuneConfig,
)

__all__ = [
    "CHECK",
    "CLUSTER",
    "COMPARE",
    "DAG",
    "DATABASE",
    "DOCTOR",
    "EXPLAIN",
    "FEATURES",
    "FULL",
    "GRAPH",
    "IMPORTS",
    "NEIGHBOURS",
    "PRECISION",
    "PREFETCH",
    "QUANTIZATION",
    "QUICK",
    "RPC",
    "STORAGE",
    "TEMPLATES",
    "WORKERS",
    "WORK_STEALING",
    "CheckConfig",
    "ClusterConfig",
    "CompareConfig",
    "CostModelConfig",
    "DagConfig",
    "DatabaseConfig",
    "DoctorConfig",
    "EvolutionConfig",
    "ExplainConfig",
    "FeatureConfig",
    "GpuSketchConfig",
    "GraphConfig",
    "ImportConfig",
    "MeasureConfig",
    "NeighbourConfig",
    "PrecisionConfig",
    "PrefetchConfig",
    "QuantizationConfig",
    "RpcConfig",
    "SchedulerConfig",
    "SketchConfig",
    "StorageConfig",
    "TemplateConfig",
    "TuneConfig",
    "WorkStealingConfig",
    "WorkerConfig",
]
