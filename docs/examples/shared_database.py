"""A team shares a database: two processes tune into one file, and a third user measures nothing.

SQLite lets several processes write to the file. Records also travel as text. The commands `ansor
db merge`, `export` and `import` do the same as the calls below.
"""

import subprocess
import sys

import numpy as np

import ansor
from ansor import workloads
from ansor.database import Database, export_jsonl, import_jsonl, merge, statistics

SIZE = 256  # rows, columns and depth of a product
TRIALS = 32  # programs that each of the two colleagues measures

# Two colleagues tune different operators at the same time, each in a process. Each process repeats
# measurements that the other one disturbs.
commands = [
    f"tune matmul:rows={SIZE},columns={SIZE},depth={SIZE} --out matmul",
    f"tune softmax:rows={SIZE},columns={SIZE} --out softmax",
]
options = ["--trials", str(TRIALS), "--database", "team.sqlite"]
processes = [
    subprocess.Popen([sys.executable, "-m", "ansor", *command.split(), *options])
    for command in commands
]
assert [process.wait() for process in processes] == [0, 0]
with Database("team.sqlite") as team:
    print(statistics(team))

    # As lines of JSON the records travel by mail or in a repository.
    print(export_jsonl(team, "team.jsonl"), "records exported")

# Another team reads the lines, and merges them with records of its own.
with Database("theirs.sqlite") as theirs, Database("all.sqlite") as both:
    print(import_jsonl(theirs, "team.jsonl"))
    print(merge(both, [theirs]))

# A user with the same processor gets the tuned operator without a measurement.
operator = list(workloads.build("matmul", rows=SIZE, columns=SIZE, depth=SIZE).tensors)
tuned = ansor.auto_schedule(operator, trials=0, database="all.sqlite")
assert tuned.finish is not None
print(f"{tuned.finish.trials} trials, {tuned.tasks[0].trials} records")
x = np.random.default_rng(0).standard_normal((SIZE, SIZE), np.float32)
np.testing.assert_allclose(tuned(x, x), x @ x, rtol=1e-3, atol=1e-3)
