"""Names that help texts list. Their registries import TVM, and help is shown without it.

`tests/cli/test_help.py` compares the names with the registries.
"""

from __future__ import annotations

DEFAULT_POLICY = "evolutionary"
_PUBLISHED = ("opevo", "gbfs", "na2c", "ga", "xgb-sa", "random", "grid")
POLICIES = (DEFAULT_POLICY, *_PUBLISHED, *(f"{name}+draft" for name in _PUBLISHED))
DEFAULT_PRECISION = "float32"
PRECISIONS = (DEFAULT_PRECISION, "bfloat16", "auto")
METHODS = ("entropy", "minmax", "percentile")
PEERS = ("torch", "inductor", "onnxruntime", "openvino")
REPORT_FORMATS = ("html", "markdown", "json")
MODEL_HELP = (
    "MODEL is a built-in network (for a batch write resnet50:batch=16), a file that "
    "torch.export.save wrote (.pt2), an ONNX file (.onnx), or an operator with its sizes, e.g. "
    "conv2d:height=28,width=28 or matmul:rows=64,dtype=bfloat16. `ansor show models` lists the "
    "names."
)
