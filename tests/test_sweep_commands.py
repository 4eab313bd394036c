# SPDX-License-Identifier: MIT
"""sweep, show, best and merge from the command line, their files read with h5py and pandas.

Arguments: the program, and "mpi" where it was built with MPI."""
import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import h5py
import pandas

from program import PROGRAM, fails, run

SCENARIO = """# a comment
[workload]
model = llama-3.2-3b;qwen-3-1.7b
seq_len = 2048:8192:2048
microbatch_size = 1..64 *8
microbatches = 8
[cluster]
gpu = a100-sxm4-40gb
parallelism = tp8;tp3;cp2tp4
pipeline_stages = 2
layers_per_stage = 15;13
[execution]
method = megatron;nanobatching+perseus
frequency_mhz = 1110;1410;2000
"""
N_POINTS = 2 * 4 * 3 * 3 * 2 * 3


def read(path):
    with open(path, "rb") as file:
        return file.read()


def points_of(path):
    with h5py.File(path, "r") as file:
        frame = pandas.DataFrame(file["points"][:])
    for column in frame.columns[frame.dtypes == object]:
        frame[column] = frame[column].str.decode("utf-8")
    return frame


def check_file(path):
    frame = points_of(path)
    assert list(frame.columns[:9]) == ["point", "model", "seq_len", "microbatch_size", "parallelism", "method",
                                       "frequency_mhz", "status", "reason"], list(frame.columns)
    assert len(frame) == N_POINTS and (frame["point"] == range(N_POINTS)).all()
    ok = frame[frame["status"] == "ok"]
    impossible = frame[frame["status"] == "impossible"]
    assert len(ok) > 50 and len(ok) + len(impossible) == N_POINTS
    assert (ok["reason"] == "").all() and (impossible["reason"] != "").all()
    assert impossible["time_s"].isna().all() and ok.notna().all().all()

    # Reasons, each for the points it belongs to and no others before it.
    tp3 = frame[(frame["parallelism"] == "tp3") & (frame["frequency_mhz"] != 2000)]
    assert tp3["reason"].str.contains("is not a multiple of tp = 3").all()
    clock = frame[frame["frequency_mhz"] == 2000]
    assert (clock["reason"] == "[execution] frequency_mhz = 2000: "
            "NVIDIA A100-SXM4-40GB has 900 to 1410 MHz in steps of 30").all(), clock["reason"].iloc[0]
    one = frame[(frame["method"] != "megatron") & (frame["microbatch_size"] == 1) & (frame["parallelism"] != "tp3")
                & (frame["frequency_mhz"] != 2000)]
    assert one["reason"].str.endswith("microbatch_size = 1: nanobatching needs at least 2 sequences to cut the "
                                      "microbatch in two").all()
    large = frame[(frame["microbatch_size"] == 64) & (frame["seq_len"] == 8192) & (frame["parallelism"] == "tp8")
                  & (frame["frequency_mhz"] == 1110)]
    assert len(large) == 4 and (large["memory_bytes"] > 40 * 2**30).all()
    assert large["reason"].str.fullmatch(r"stage [01] needs \d+\.\d GiB a GPU, NVIDIA A100-SXM4-40GB has 40").all()
    assert (ok["memory_bytes"] < 40 * 2**30).all()

    # Parts sum up, and the breakdown to the whole.
    assert ((ok["energy_static_j"] + ok["energy_dynamic_j"]) / ok["energy_j"] - 1).abs().max() < 1e-12
    with h5py.File(path, "r") as file:
        breakdown = pandas.DataFrame(file["breakdown"][:])
        units = dict(zip(file["points"].dtype.names, [unit.decode() for unit in file["points"].attrs["unit"]]))
        scenario = file["scenario"][0]
        assert scenario["text"].decode() == SCENARIO
        assert re.fullmatch(r"a100-sxm4-40gb [0-9a-f]{64}\nllama-3.2-3b [0-9a-f]{64}\nqwen-3-1.7b [0-9a-f]{64}\n",
                            scenario["inputs"].decode())
    assert units["frequency_mhz"] == "MHz" and units["seq_len"] == "tokens" and units["energy_j"] == "J"
    sums = breakdown.groupby("point")[["time_s", "energy_j"]].sum()
    ok = ok.set_index("point")
    assert list(sums.index) == list(ok.index)
    assert (sums["time_s"] / ok["time_s"] - 1).abs().max() < 1e-9
    assert (sums["energy_j"] * ok["gpus"] / ok["energy_j"] - 1).abs().max() < 1e-9


def check_against_simulate(folder, path):
    """A point is what simulate says of its scenario."""
    text = SCENARIO.replace("llama-3.2-3b;qwen-3-1.7b", "qwen-3-1.7b").replace("2048:8192:2048", "4096")
    text = text.replace("1..64 *8", "8").replace("tp8;tp3;cp2tp4", "cp2tp4").replace("1110;1410;2000", "1110")
    text = text.replace("megatron;nanobatching+perseus", "nanobatching+perseus")
    single = os.path.join(folder, "single.ini")
    with open(single, "w") as file:
        file.write(text)
    rows = csv.DictReader(io.StringIO(run("simulate", single, "--format", "csv").stdout))
    simulated = {(row["section"], row["metric"]): float(row["value"]) for row in rows}
    shown = json.loads(run("show", path, "--format", "json", "--where",
                           "model=qwen-3-1.7b and seq_len=4096 and microbatch_size=8 and parallelism=cp2tp4 and "
                           "method='nanobatching+perseus' and frequency_mhz=1110").stdout)
    assert len(shown) == 1
    for key, column in {("iteration", "time"): "time_s", ("energy", "cluster"): "energy_j",
                        ("energy", "cluster_static"): "energy_static_j", ("energy", "per_token"): "energy_per_token_j",
                        ("iteration", "throughput"): "tokens_per_s", ("iteration", "mfu"): "mfu",
                        ("power", "peak_per_gpu"): "power_peak_w", ("communication", "exposed"):
                        "exposed_communication_s", ("communication", "overlapped"): "overlapped_communication_s",
                        ("time_breakdown", "pipeline_bubble"): "bubble_s"}.items():
        assert shown[0][column] == simulated[key], (column, shown[0][column], simulated[key])
    assert abs(shown[0]["memory_bytes"] / 2**30 - simulated["memory", "total"]) < 1e-6


def check_show(path):
    frame = points_of(path)
    shown = pandas.read_csv(io.StringIO(run("show", path, "--where", "seq_len=4096 and status=ok", "--sort", "energy_j",
                                            "--columns", "point,energy_j", "--format", "csv").stdout))
    expected = frame[(frame["seq_len"] == 4096) & (frame["status"] == "ok")].sort_values("energy_j", kind="stable")
    assert list(shown.columns) == ["point", "energy_j"]
    assert list(shown["point"]) == list(expected["point"])
    down = run("show", path, "-s", "energy_j", "-r", "-c", "point", "-n", "1", "-f", "csv").stdout
    assert down == f"point\n{frame.loc[frame['energy_j'].idxmax(), 'point']}\n", down
    # Missing cells are last in either direction.
    tail = run("show", path, "-s", "energy_j", "-c", "energy_j", "-f", "csv").stdout.split("\n")
    assert tail[1] != "" and tail[-2] == ""
    assert SCENARIO in run("show", path, "scenario").stdout
    assert run("show", path, "--describe", "--format", "csv").stdout.split("\n")[1] == \
        "point,integer,1,number of the point in the grid"
    assert run("show", path, "frontiers", "--format", "csv").stdout.split("\n")[1:] == [""]
    text = run("show", path, "breakdown", "--limit", "1").stdout.split("\n")
    assert text[0].split() == ["point", "kind", "time_s", "energy_j"] and text[1].split()[1] == "gemm"

    assert fails("show", path, "point", status=2) == \
        f"{path}: no table 'point'; there are: breakdown, frontiers, points, scenario"
    assert fails("show", path, "--where", "x=1", status=2).startswith('--where "x=1": no column \'x\'; there are: point')
    assert fails("show", path, "--sort", "x", status=2).startswith("--sort x: no such column; there are: point, model")
    assert fails("show", path, "--columns", "point,y", status=2).startswith("--columns y: no such column; there are: ")
    assert fails("show", path, "--format", "xml", status=2) == "--format xml: text, csv or json is needed"
    assert fails("show", path, "--limit", "-1", status=2) == "--limit -1: a number of rows is needed"
    assert fails("show", path + "x") == f"{path}x: cannot open: No such file or directory"


def check_best(path):
    frame = points_of(path)
    ok = frame[(frame["status"] == "ok") & (frame["time_s"] <= 5.5)]
    best = pandas.read_csv(io.StringIO(run("best", path, "--metric", "energy_per_token_j", "--deadline", "5.5", "--by",
                                           "model,seq_len", "--format", "csv").stdout))
    expected = ok.loc[ok.groupby(["model", "seq_len"])["energy_per_token_j"].idxmin()]
    assert len(best) > 4 and sorted(best["point"]) == sorted(expected["point"])
    assert list(best.columns) == ["point", "model", "seq_len", "microbatch_size", "parallelism", "method",
                                  "frequency_mhz", "time_s", "energy_j", "energy_per_token_j"]
    fastest = pandas.read_csv(io.StringIO(run("best", path, "-m", "tokens_per_s", "-f", "csv").stdout))
    ok = frame[frame["status"] == "ok"]
    assert list(fastest["point"]) == list(ok.loc[ok.groupby("model")["tokens_per_s"].idxmax(), "point"])
    most = run("best", path, "-m", "bubble_s", "--largest", "-w", "model=qwen-3-1.7b", "-c", "point", "-f", "csv").stdout
    assert most == f"point\n{ok.loc[ok[ok['model'] == 'qwen-3-1.7b']['bubble_s'].idxmax(), 'point']}\n"

    assert fails("best", path, "--metric", "status", status=2) == "--metric status: a column of numbers is needed"
    assert fails("best", path, "--metric", "x", status=2).startswith("--metric x: no such column; there are: point")
    assert fails("best", path, "--by", "x", status=2).startswith("--by x: no such column; there are: point")
    assert fails("best", path, "--deadline", "-1", status=2) == "--deadline -1: a time above 0 in seconds is needed"
    assert fails("best", path, "--deadline", "0.001") == f"{path}: no point has energy_j and meets time_s <= 0.001"


def check_wrong_use(folder, scenario, path):
    other = os.path.join(folder, "other.h5")
    assert fails("sweep", scenario, status=2) == "sweep: -o FILE is needed"
    assert fails("sweep", scenario, "-o", other, "--jobs", "-1", status=2) == "--jobs -1: 1 to 4096 threads are needed"
    assert fails("sweep", scenario, "-o", other, "--limit", "-1", status=2) == \
        "--limit -1: a number of points is needed"
    assert fails("sweep", scenario, "-o", other, "--shard", "3/3", status=2) == \
        "--shard 3/3: i/n is needed, the i-th of n shards counted from 0, such as 0/4"
    assert fails("sweep", scenario, "-o", other, "--where", "x=1", status=2) == \
        "--where \"x=1\": no column 'x'; there are: model, seq_len, microbatch_size, parallelism, method, frequency_mhz"
    assert fails("sweep", scenario + "x", "-o", other) == f"{scenario}x: No such file or directory"
    assert fails("merge", path, status=2) == "merge: -o FILE is needed"
    assert fails("merge", "-o", other, path) == f"{path}: not a shard: a sweep with --shard writes one"
    wrong = os.path.join(folder, "wrong.ini")
    for old, new, message in [
            ("tp3", "8tp", "stopped after 6 of 432 points, which are kept: point 6 (model = llama-3.2-3b, seq_len = 2048, "
             f"microbatch_size = 1, parallelism = 8tp, method = megatron, frequency_mhz = 1110): {wrong}: [cluster] "
             "parallelism = 8tp: degrees such as tp8, cp2tp4 or tp4pp2 are needed"),
            ("qwen-3-1.7b", "qwen-4", f"{wrong}: [workload] model = qwen-4: "),
            ("1110;1410;2000", "1110:1410", f"{wrong}: [execution] frequency_mhz = 1110:1410: a range is "
             "start:stop:step, three numbers; '1110:1410' is not"),
            ("frequency_mhz", "freq_mhz", f"{wrong}: [execution] freq_mhz")]:
        with open(wrong, "w") as file:
            file.write(SCENARIO.replace(old, new))
        error = fails("sweep", wrong, "-o", other, "-j", "1")
        assert message in error, error
        # A scenario without a single good point leaves nothing that would be in the way of a better one.
        assert os.path.exists(other + ".journal") == ("6 of 432 points" in message)
        if os.path.exists(other + ".journal"):
            os.remove(other + ".journal")
    assert not os.path.exists(other + ".part")
    with open(wrong, "w") as file:
        file.write(SCENARIO.replace("microbatches = 8", "microbatches = 16"))
    assert fails("sweep", wrong, "-o", path) == \
        f"{path}: belongs to another sweep: [workload] microbatches = 8 there, 16 here; give another output, or remove it"


def check_interrupt(folder, whole):
    """Ctrl-C at the command line, and on."""
    scenario = os.path.join(folder, "long.ini")
    with open(scenario, "w") as file:
        file.write(SCENARIO.replace("2048:8192:2048", "512:8192:128"))
    path = os.path.join(folder, "long.h5")
    process = subprocess.Popen([PROGRAM, "sweep", scenario, "-o", path, "-j", "2"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    journal = path + ".journal"
    while not os.path.exists(journal) or os.path.getsize(journal) < 100000:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1, (process.returncode, errors)
    assert re.search(r"nanojoule: stopped after \d+ of 6588 points, which are kept: the same command goes on from "
                     r"there\n$", errors), errors
    assert not os.path.exists(path)
    dry = run("sweep", scenario, "-o", path, "--dry-run").stdout
    assert re.search(r"^6588 points, of which \d+ are done; about .* s on \d+ threads \(20 sampled, .* ms each\)$", dry,
                     re.M), dry
    done = run("sweep", scenario, "-o", path).stdout
    assert re.match(rf"{re.escape(path)}: 6588 points, \d+ of them from an earlier run, \d+ computed in ", done), done
    again = os.path.join(folder, "again.h5")
    assert run("sweep", scenario, "-o", again, "--quiet").stdout == ""
    assert read(path) == read(again)


def check_mpi(folder, scenario, whole):
    launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n"]
    path = os.path.join(folder, "mpi.h5")
    for ranks in ["2", "3"]:
        run("sweep", scenario, "-o", path, launcher=[*launcher, ranks])
        assert read(path) == read(whole)
        os.remove(path)
    # A limit first, then the rest: rank 0 goes on with what there is.
    run("sweep", scenario, "-o", path, "--limit", "100", launcher=[*launcher, "2"])
    run("sweep", scenario, "-o", path, launcher=[*launcher, "2"])
    assert read(path) == read(whole)
    os.remove(path)
    # An error, before the sweep and during it, ends all ranks.
    result = subprocess.run([*launcher, "2", PROGRAM, "sweep", scenario + "x", "-o", path], capture_output=True,
                            text=True, timeout=60)
    assert result.returncode == 1 and result.stderr.count("nanojoule: ") == 1, result.stderr
    wrong = os.path.join(folder, "wrong.ini")
    with open(wrong, "w") as file:
        file.write(SCENARIO.replace("tp3", "8tp"))
    result = subprocess.run([*launcher, "3", PROGRAM, "sweep", wrong, "-o", path], capture_output=True, text=True,
                            timeout=60)
    assert result.returncode == 1 and "parallelism = 8tp" in result.stderr, result.stderr
    assert result.stderr.count("nanojoule: stopped after ") == 1, result.stderr
    # Ranks that do not sweep the same are told.
    other = os.path.join(folder, "rank.sh")
    with open(other, "w") as file:
        file.write(f'#!/bin/sh\nif [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then cd {folder}/b; else cd {folder}/a; fi\n'
                   f'exec {PROGRAM} sweep s.ini -o {path}2\n')
    os.chmod(other, 0o755)
    for name, text in [("a", SCENARIO), ("b", SCENARIO + "# other\n")]:
        os.mkdir(os.path.join(folder, name))
        with open(os.path.join(folder, name, "s.ini"), "w") as file:
            file.write(text)
    result = subprocess.run([*launcher, "2", other], capture_output=True, text=True, timeout=60)
    assert result.returncode == 1 and "rank 1 has another scenario, data file or program than rank 0" in \
        result.stderr, result.stderr


def main():
    with tempfile.TemporaryDirectory() as folder:
        scenario, whole = os.path.join(folder, "s.ini"), os.path.join(folder, "whole.h5")
        with open(scenario, "w") as file:
            file.write(SCENARIO)
        summary = run("sweep", scenario, "-o", whole, "--jobs", "2").stdout
        assert re.match(rf"{re.escape(whole)}: {N_POINTS} points, {N_POINTS} computed in ", summary), summary
        check_file(whole)
        one = os.path.join(folder, "one.h5")
        run("sweep", scenario, "-o", one, "--jobs", "1")
        assert read(one) == read(whole)
        shards = [os.path.join(folder, f"shard{i}.h5") for i in range(3)]
        for i, shard in enumerate(shards):
            run("sweep", scenario, "-o", shard, "--shard", f"{i}/3")
        merged = os.path.join(folder, "merged.h5")
        run("merge", "-o", merged, *shards)
        assert read(merged) == read(whole)
        check_against_simulate(folder, whole)
        check_show(whole)
        check_best(whole)
        check_wrong_use(folder, scenario, whole)
        check_interrupt(folder, whole)
        if sys.argv[2:] == ["mpi"]:
            check_mpi(folder, scenario, whole)


main()
