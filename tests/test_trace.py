# SPDX-License-Identifier: MIT
"""Traces of simulate, read by jq: slices nest, none overlap on a thread, joules sum to the report.

Argument: the program."""
import csv
import gzip
import io
import json
import math
import os
import resource
import stat
import subprocess
import tempfile

from program import PROGRAM, fails, run

SCENARIO = """[workload]
model = llama-3.2-3b
seq_len = 4096
microbatch_size = 8
microbatches = %d
[cluster]
gpu = a100-sxm4-40gb
parallelism = %s
pipeline_stages = 2
[execution]
method = %s
"""


def jq(program, path, *options):
    result = subprocess.run(["jq", "-c", *options, program, path], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def report_of(text):
    return {(row["section"], row["metric"]): float(row["value"]) for row in csv.DictReader(io.StringIO(text))}


def close(a, b, tolerance=1e-6):
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-9)


# In picoseconds, so that jq compares integers: the six digits behind the point are what they are written from.
SLICES = """[.traceEvents[] | select(.ph == "X") | select(.tid == %d and .pid == %d)
  | [(.ts * 1e6 | round), ((.ts + .dur) * 1e6 | round), .cat, .name]] | sort_by(.[0], -.[1])"""


def check_nesting(path, n_microbatches):
    for stage in (0, 1):
        for thread in (1, 2, 3):
            (slices,) = jq(SLICES % (thread, stage), path)
            assert len(slices) > 100, (stage, thread, len(slices))
            outer_end, inner_end, outers = 0, 0, 0
            for start, end, cat, name in slices:
                assert start <= end
                if cat in ("instruction", "waiting"):
                    # Two slices that touch may differ by what is lost in microseconds as binary fractions.
                    assert start >= outer_end - 1 and start >= inner_end - 1, (stage, name, start, outer_end)
                    outer_end, outers = end, outers + 1
                else:
                    assert start >= inner_end - 1, (stage, thread, name, start, inner_end)
                    if thread == 2:
                        assert start >= 0 and end <= outer_end + 1, (name, end, outer_end)
                    inner_end = end
            assert (outers >= 2 * n_microbatches) == (thread == 2), (stage, thread, outers)


def check_energy(path, report, ranks):
    (sums,) = jq("""{joules: ([.traceEvents[] | select(.ph == "X" and .args.joules != null) | .args.joules] | add),
      instructions: ([.traceEvents[] | select(.cat == "instruction") | .args.dynamic_j] | add),
      waiting: ([.traceEvents[] | select(.cat == "waiting") | .args.joules] | add),
      stages: ([.traceEvents[] | select(.name == "process_name")] | length), other: .otherData}""", path)
    other = sums["other"]
    assert close(sums["joules"], other["dynamic_j"]), sums
    assert close(sums["instructions"] + sums["waiting"], other["dynamic_j"]), sums
    assert close(other["time_s"], report["iteration", "time"]), other
    static_j = other["static_w"] * other["time_s"] * sums["stages"]
    assert close(ranks * (sums["joules"] + static_j), report["energy", "cluster"]), (sums, report)
    # The power counter holds until it changes.
    (powers,) = jq("""[.traceEvents[] | select(.ph == "C" and .name == "power") | [.pid, .ts, .args.W]]""", path)
    total = 0
    for stage in (0, 1):
        own = [(at, watts) for pid, at, watts in powers if pid == stage]
        assert own == sorted(own) and own[-1][1] == 0
        total += sum((b[0] - a[0]) * 1e-6 * a[1] for a, b in zip(own, own[1:]))
    assert close(ranks * total, report["energy", "cluster"]), (total, report)


def check_flows(path, n_microbatches):
    (flows,) = jq("""[.traceEvents[] | select(.ph == "s" or .ph == "f") | {ph, pid, tid, ts, id, name, bp}]""", path)
    begins = {flow["id"]: flow for flow in flows if flow["ph"] == "s"}
    ends = {flow["id"]: flow for flow in flows if flow["ph"] == "f"}
    # Activations forward and gradients back, once a microbatch.
    assert len(begins) == len(ends) == len(flows) // 2 == 2 * n_microbatches and begins.keys() == ends.keys()
    for key, begin in begins.items():
        end = ends[key]
        assert begin["ts"] < end["ts"] and end["bp"] == "e" and begin["name"] == end["name"]
        forward = begin["name"] == "activations"
        assert (begin["pid"], end["pid"]) == ((0, 1) if forward else (1, 0)), (begin, end)
    # Each end lies on the beginning of a slice of its thread.
    (starts,) = jq("""[.traceEvents[] | select(.ph == "X") | [.pid, .tid, .ts]]""", path)
    starts = {tuple(start) for start in starts}
    for flow in ends.values():
        assert (flow["pid"], flow["tid"], flow["ts"]) in starts, flow


def check_kernels(path):
    (kernels,) = jq("""[.traceEvents[] | select(.ph == "X" and .args.flop != null) | .args]""", path)
    for kernel in kernels:
        assert 0 < kernel["sms"] <= 108 and 900 <= kernel["clock_mhz"] <= 1410 and kernel["joules"] > 0, kernel
        assert kernel["flop"] >= 0 and kernel["hbm_bytes"] + kernel["link_bytes"] > 0, kernel
    return kernels


def check_method(folder, method, parallelism, ranks, tail=()):
    scenario, trace = os.path.join(folder, "s.ini"), os.path.join(folder, "t.json")
    write(scenario, SCENARIO % (3, parallelism, method))
    plain = run("simulate", scenario, "--format", "csv").stdout
    traced = run("simulate", scenario, "--format", "csv", "--trace", trace).stdout
    assert plain == traced  # observing changes nothing
    check_nesting(trace, 3)
    check_energy(trace, report_of(plain), ranks)
    check_flows(trace, 3)
    kernels = check_kernels(trace)
    # Beside a collective compute kernels have fewer SMs than there are.
    squeezed = any(kernel["link_bytes"] == 0 and kernel["sms"] < 108 for kernel in kernels)
    assert squeezed == (method != "megatron"), method
    (tails,) = jq("""[.traceEvents[] | select(.cat == "instruction" and .args.microbatch == null) | .name]""", trace)
    assert tails == list(tail), tails
    assert not os.path.exists(trace + ".part")

    run("simulate", scenario, "--trace", trace + ".gz")
    with gzip.open(trace + ".gz") as packed, open(trace, "rb") as file:
        assert packed.read() == file.read()
    assert os.path.getsize(trace + ".gz") < os.path.getsize(trace) / 5

    run("simulate", scenario, "--trace", trace + ".2")
    with open(trace, "rb") as one, open(trace + ".2", "rb") as two:
        assert one.read() == two.read()


def check_window(folder):
    scenario, trace = os.path.join(folder, "s.ini"), os.path.join(folder, "t.json")
    write(scenario, SCENARIO % (3, "tp8", "megatron"))
    run("simulate", scenario, "--trace", trace)
    (wanted,) = jq("""[.traceEvents[] | select(.ph == "X" and .ts < 1.5e6 and .ts + .dur > 1e6)]""", trace)
    (whole,) = jq("""[.traceEvents[] | select(.ph == "X")] | length""", trace)
    run("simulate", scenario, "--trace", trace, "--trace-from", "1", "--trace-to", "1.5")
    (window,) = jq("""[.traceEvents[] | select(.ph == "X")]""", trace)
    assert window == wanted and 0 < len(window) < whole / 3, (len(window), len(wanted), whole)
    (flows,) = jq("""[.traceEvents[] | select(.ph == "s" or .ph == "f") | .id] | group_by(.) | map(length)""", trace)
    assert all(n == 2 for n in flows)


def peak_kib(scenario, trace):
    pid = os.fork()
    if pid == 0:
        with open(os.devnull, "w") as null:
            os.dup2(null.fileno(), 1)
        os.execv(PROGRAM, [PROGRAM, "simulate", scenario, "--trace", trace])
    _, status, usage = os.wait4(pid, 0)
    assert status == 0
    return usage.ru_maxrss


def check_memory(folder):
    """Twenty times the events need no more memory."""
    scenario, trace = os.path.join(folder, "s.ini"), os.path.join(folder, "t.json")
    peaks, sizes = [], []
    for n_microbatches in (2, 40):
        write(scenario, SCENARIO % (n_microbatches, "tp8", "megatron"))
        peaks.append(peak_kib(scenario, trace))
        sizes.append(os.path.getsize(trace))
    assert sizes[1] > 19 * sizes[0] > 19 * 1e6
    # Under the sanitizers freed memory is kept aside for a while.
    if "ASAN_OPTIONS" not in os.environ and "UBSAN_OPTIONS" not in os.environ:
        assert peaks[1] < peaks[0] + 2048, peaks
    os.unlink(trace)


def check_errors(folder):
    scenario, trace = os.path.join(folder, "s.ini"), os.path.join(folder, "t.json")
    write(scenario, SCENARIO % (8, "tp8", "megatron"))
    assert fails("simulate", scenario, "--trace-to", "1", status=2) == \
        "simulate: --trace-from and --trace-to say what part of --trace to write: it is missing"
    for window in (("2", "1"), ("1", "1"), ("-1", "1"), ("nan", "1")):
        message = fails("simulate", scenario, "--trace", trace, "--trace-from", window[0], "--trace-to", window[1],
                        status=2)
        assert message == ("simulate: --trace-from %s --trace-to %s: 0 <= from < to is needed, in seconds" % window)
    assert fails("simulate", scenario, "--trace", folder) == folder + ": is a folder; a file name is needed"
    missing = os.path.join(folder, "none", "t.json")
    assert fails("simulate", scenario, "--trace", missing) == missing + ": its folder does not exist"
    # What was there stays where the run fails, and nothing is left beside it.
    write(trace, "old")
    write(scenario, SCENARIO.replace("_size = 8", "_size = 1") % (8, "tp8", "nanobatching+perseus"))
    message = fails("simulate", scenario, "--trace", trace)
    assert "nanobatching needs at least 2 sequences" in message, message
    with open(trace) as file:
        assert file.read() == "old"
    assert not os.path.exists(trace + ".part")
    os.chmod(trace, stat.S_IRUSR)
    assert fails("simulate", scenario, "--trace", trace) == trace + ": is read-only"


def check_full_disk(folder):
    """A file that cannot grow is told, and removed."""
    scenario, trace = os.path.join(folder, "s.ini"), os.path.join(folder, "full.json")
    write(scenario, SCENARIO % (8, "tp8", "megatron"))

    def limit():
        import signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    result = subprocess.run([PROGRAM, "simulate", scenario, "--trace", trace], capture_output=True, text=True,
                            preexec_fn=limit)
    assert result.returncode == 1 and result.stdout == "", result
    assert result.stderr.startswith("nanojoule: %s: cannot be written: " % trace), result.stderr
    assert not os.path.exists(trace) and not os.path.exists(trace + ".part")


with tempfile.TemporaryDirectory() as temporary:
    check_method(temporary, "megatron", "tp8", 8)
    check_method(temporary, "nanobatching+perseus", "cp2tp4", 8)
    check_method(temporary, "megatron", "tp4dp2", 8, ["reduce gradients"] * 2)
    check_window(temporary)
    check_memory(temporary)
    check_full_disk(temporary)
    check_errors(temporary)
