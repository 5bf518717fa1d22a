"""A recipe without a model, as a script in a repository of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = r"""#!/usr/bin/env bash
# Counts of nothing.
#
# It has two paragraphs.
paper=nmt_lectures table=1.5 family=counters licence="public domain" seeds_small=2 seeds_paper=3
rows=(plain "stack + gate" fail)
smoke_rows=(plain)
baselines=(copy) smoke_baselines=()

cell() {
    dataset="counts, $scale" minutes=1.5 disk=2 download=30
    [[ "$scale" == paper ]] || table=1.5-stand-in
    raw numbers
    prepare counts python bin/make.py n.txt "${from[@]}"
    if [[ "$row" == copy ]]; then
        python bin/copy.py "$out/copy.json"
        record copy.json
        return
    fi
    shared "first-$scale" python bin/make.py times "seven 8"
    log=counted.log fairseq-validate "$out" "$row" "$seed" "\$(cat $shared/chosen)" "${cpu[@]}"
    record "times[runs]=counted.log:valid_times/length" "1.6:seed[]=counted.log:valid_seed"
}

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
"""
COPY = """import json, sys
with open(sys.argv[1], "w") as stream:
    json.dump([{"metric": "times", "value": 6, "unit": "runs"}], stream)
"""
MAKE = """import pathlib, sys
folder = pathlib.Path(sys.argv[-1])
folder.mkdir(parents=True, exist_ok=True)
with open(folder / sys.argv[1], "a") as stream:
    stream.write("x")
(folder / "chosen").write_text(sys.argv[2])
"""
# counts how often it was run, and fails at the row "fail"
VALIDATE = r"""#!/usr/bin/env python3
import json, os, pathlib, sys
out, row, seed, *words = sys.argv[1:]
f = pathlib.Path(out, "runs.txt"); f.write_text(f.read_text() + "x" if f.exists() else "x")
said = {"valid_times": len(f.read_text()), "valid_times_2": 1.5, "valid_times_1": 0.5, "valid_seed": seed,
        "words": words, "threads": os.environ.get("OMP_NUM_THREADS")}
print(f"2026-01-01 00:00:00 | INFO | valid | {json.dumps(said)}")
sys.exit("bad luck" if row == "fail" else 0)
"""
# trains for one epoch in its checkpoint.save_dir, and says what fairseq would
TRAIN = r"""#!/usr/bin/env python3
import json, pathlib, sys
folder = pathlib.Path(next(word.split("=", 1)[1] for word in sys.argv if word.startswith("checkpoint.save_dir=")))
names = ["last"] if "optimization.stop_time_hours=0.001" in sys.argv else ["best", "last"]  # not validated
for name in names:
    (folder / f"checkpoint_{name}.pt").write_text("weights")
said = {"epoch": "1", "valid_loss": "0.5", "valid_best_loss": "0.5"}
print(f"2026-01-01 00:00:00 | INFO | valid | {json.dumps(said)}", flush=True)
"""


def make_repository(folder: Path, text: str = TEXT) -> Path:
    """recipes/nmt_lectures/fake.sh in a repository below the folder, which has fairseq-validate in bin/ too."""
    script = folder / "repository" / "recipes" / "nmt_lectures" / "fake.sh"
    script.parent.mkdir(parents=True)
    script.write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "recipes" / "common.sh", script.parent.parent)
    binary = folder / "repository" / "bin" / "fairseq-validate"
    binary.parent.mkdir()
    binary.write_text(VALIDATE, encoding="utf-8")
    training = binary.with_name("fairseq-hydra-train")
    training.write_text(TRAIN, encoding="utf-8")
    (binary.parent / "make.py").write_text(MAKE, encoding="utf-8")
    (binary.parent / "copy.py").write_text(COPY, encoding="utf-8")
    for path in (script, binary, training):
        path.chmod(0o755)
    return script
