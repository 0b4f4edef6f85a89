"""A network of three convolutions under a built-in name; run as a script, a child that knows it."""

from __future__ import annotations

import json
import sys

from ansor.compare import child
from ansor.compare.case import Case
from ansor.models import ResNetConfig, registry

NAME = "tiny"
CONFIGS = {NAME: ResNetConfig(blocks=(1,), width=8, classes=10, image=32)}

if __name__ == "__main__":
    registry.CONFIGS = CONFIGS
    child.main(sys.argv[1], Case(**json.loads(sys.argv[2])))
