"""The search on NVIDIA GPUs."""

from __future__ import annotations

from ansor.targets.cuda.complete import complete_for_gpu
from ansor.targets.cuda.draft.details import details
from ansor.targets.cuda.draft.draft import draft_for_gpu
from ansor.targets.cuda.legality import legal_on_gpu
from ansor.targets.cuda.rules.rules import GPU_RULES
from ansor.targets.cuda.rules.tensor_cores import left_to_plain_cores
from ansor.targets.search import TargetSearch

CUDA_SEARCH = TargetSearch(
    GPU_RULES, complete_for_gpu, legal_on_gpu, draft_for_gpu, left_to_plain_cores, details
)
