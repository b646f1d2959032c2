#!/usr/bin/env python3
"""Plants faults in the arithmetic of limits, one at a time, and sees whether
model_arithmetic reports each within 10,000 operations:

    faults.py SOURCE_FOLDER BUILD_FOLDER COMPILER...

Works on copies. Prints the faults that were missed; the exit status is 1 then.
"""

import os
import shutil
import subprocess
import sys
import tempfile

FAULTS = [
    ("fixed_window.c", "(cost > 0 ? cost : 1) <= limit->max", "(cost > 0 ? cost : 1) < limit->max"),
    ("fixed_window.c", "if (state.time_us <= now_us)\n", "if (state.time_us < now_us)\n"),
    ("fixed_window.c", "answer->retry_us = allowed ? 0 : until_end_us", "answer->retry_us = allowed ? 0 : until_end_us - 1"),
    ("fixed_window.c", "if (state.time_us > latest_us)", "if (false)"),
    ("fixed_window.c", "if (state.time_us != charged.time_us ||", "if ("),
    ("fixed_window.c", "now_us - now_us % limit->window_us + limit", "now_us + limit"),
    ("calendar.c", "/ 153;", "/ 154;"),
    ("calendar.c", "of % 4 == 0 && of % 100 != 0", "of % 4 == 1"),
    ("sliding_counter.c", "(weir__wide)limit->max * limit->window_us;\n    if (allowed", "(weir__wide)limit->max * limit->window_us - 1;\n    if (allowed"),
    ("sliding_counter.c", "view->left_us - left_us : 0", "view->left_us - left_us - 1 : 0"),
    ("sliding_counter.c", "limit->max - cost - view->units, length_us", "limit->max - 1 - view->units, length_us"),
    ("sliding_counter.c", "fades_us(limit, view->units, limit->max - cost)", "fades_us(limit, view->units, limit->max - 1)"),
    ("sliding_counter.c", "else if (ahead_us == -length_us)", "else if (ahead_us == -2 * length_us)"),
    ("sliding_counter.c", "? &view.before", "? NULL"),
    ("token_bucket.c", "bool allowed = too_much <= 0", "bool allowed = too_much < 0"),
    ("token_bucket.c", "span + limit->units - 1", "span"),
    ("token_bucket.c", "(fine_time)(cost > 0 ? cost : 1) * limit->period_us", "(fine_time)limit->period_us"),
    ("token_bucket.c", "ret_answer->retry_us = ceil_us(limit, allowed ? 0 : too_much)", "ret_answer->retry_us = ceil_us(limit, allowed ? 0 : missing + limit->period_us - capacity(limit))"),
    ("token_bucket.c", "return until_full < capacity(limit) ? until_full : capacity(limit);", "return until_full;"),
    ("token_bucket.c", ".value = (int64_t)(until_full - fine(limit, whole_us)),", ".value = 0,"),
    ("token_bucket.c", "missing - (back < undrained ? back : undrained)", "missing - back"),
]


def build(includes, folder, compiler):
    parts = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".c")]
    program = os.path.join(folder, "model")
    subprocess.run(
        compiler
        + ["-std=c11", "-D_GNU_SOURCE", "-O1", "-w", "-o", program]
        + ["-I" + path for path in includes]
        + parts,
        check=True,
    )
    return program


def missed(includes, folder, compiler, fault):
    name, old, new = fault
    path = os.path.join(folder, name)
    with open(path, encoding="ascii") as file:
        text = file.read()
    if text.count(old) != 1:
        sys.exit(f"{name}: no single place for the fault: {old}")
    with open(path, "w", encoding="ascii") as file:
        file.write(text.replace(old, new))
    program = build(includes, folder, compiler)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    run = subprocess.run([program, "10000"], stdout=subprocess.DEVNULL, timeout=60)
    return run.returncode == 0


def main(source, build_folder, compiler):
    includes = [
        os.path.join(build_folder, "include"),
        os.path.join(source, "lib"),
        os.path.join(source, "tests"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        limit = os.path.join(source, "lib", "limit")
        names = [name for name in os.listdir(limit) if name.endswith(".c")]
        for name in names:
            if name not in ("policy.c", "subject.c"):
                shutil.copy(os.path.join(limit, name), folder)
        shutil.copy(os.path.join(source, "lib", "base", "error.c"), folder)
        shutil.copy(os.path.join(source, "tests", "model", "arithmetic.c"), folder)
        late = [fault for fault in FAULTS if missed(includes, folder, compiler, fault)]
    for name, old, new in late:
        print(f"{name}: not noticed: {old} -> {new}")
    print(f"{len(FAULTS) - len(late)} of {len(FAULTS)} planted faults noticed within 10,000 operations")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
