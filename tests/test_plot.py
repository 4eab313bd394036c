# SPDX-License-Identifier: MIT
"""Every kind of plot: its data against the data's source, drawn by gnuplot, read by xmllint; errors.

Argument: the program."""
import csv
import io
import json
import math
import os
import shlex
import stat
import subprocess
import tempfile

from program import fails, run

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GPU = os.path.join(ROOT, "models", "gpus", "a100-sxm4-40gb.ini")
SCENARIO = """[workload]
model = llama-3.2-1b
seq_len = 2048
microbatch_size = 4
microbatches = 4
[cluster]
gpu = %s
parallelism = tp4
pipeline_stages = 2
[execution]
method = megatron
"""
GRID = """[workload]
model = llama-3.2-3b
seq_len = 4096;16384
microbatch_size = 2;8;16
microbatches = 4
[cluster]
gpu = a100-sxm4-40gb
parallelism = tp8;tp3
pipeline_stages = 2
[execution]
method = megatron
"""
COMPARISON = """[comparison]
table = frontier
title = a title
source = a source
gpu = a100-sxm4-40gb
pipeline_stages = 2
microbatches = 4
metrics = iso_time_energy_reduction;iso_energy_time_reduction
methods = nanobatching+perseus;kareus
[llama-3.2-1b tp4 4 x 2048]
nanobatching+perseus = none;3.5
nanobatching+perseus.rerun = -;4.5
kareus = 10;12
[llama-3.2-1b tp8 4 x 2048]
kareus = 11;-
"""


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def read_rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def script_of(*arguments, **more):
    """Variables and data blocks of a script: {name: value}, {name: [rows as dictionaries]}."""
    variables, blocks = {}, {}
    text = run("plot", *arguments, "--script", **more).stdout
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("# SPDX"):
            break  # the scripts begin
        words = line.split()
        if words and words[0].startswith("$"):
            columns = next(lines)[2:].split()
            rows = []
            for row in lines:
                if row == "END_OF_DATA":
                    break
                fields = shlex.split(row)
                assert len(fields) == len(columns), (columns, row)
                rows.append(dict(zip(columns, map(number, fields))))
            blocks[words[0][1:]] = rows
        elif len(words) > 2 and words[1] == "=":
            value = line.split(" = ", 1)[1].replace("1.0 * ", "")
            variables[words[0]] = number(shlex.split(value)[0])
    return variables, blocks


def close(a, b, tolerance=1e-6):
    return math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-9)


def draw(folder, *arguments, suffixes=("svg",), **more):
    for suffix in suffixes:
        path = os.path.join(folder, "figure." + suffix)
        run("plot", *arguments, "-o", path, **more)
        with open(path, "rb") as file:
            content = file.read()
        assert not os.path.exists(path + ".part") and len(content) > 2000, (arguments, len(content))
        if suffix == "svg":
            subprocess.run(["xmllint", "--noout", "--nonet", path], check=True)
            assert b"<svg" in content and b"#D55E00" in content.upper() or b"rgb(" in content, arguments
            run("plot", *arguments, "-o", path, **more)
            with open(path, "rb") as file:
                assert file.read() == content  # same input, same bytes
        elif suffix == "png":
            assert content.startswith(b"\x89PNG\r\n")
        else:
            assert content.startswith(b"%PDF-")


def check_script_alone(folder, scenario):
    """What --script prints draws without the program."""
    path = os.path.join(folder, "alone.svg")
    script = run("plot", scenario, "timeline", "--script", "-o", path).stdout
    subprocess.run(["gnuplot", "-"], input=script, text=True, check=True, capture_output=True)
    by_hand = open(path).read()
    run("plot", scenario, "timeline", "-o", path)
    assert open(path).read() == by_hand


def check_timeline(folder, scenario):
    variables, blocks = script_of(scenario, "timeline")
    trace = os.path.join(folder, "t.json")
    run("simulate", scenario, "--trace", trace)
    with open(trace) as file:
        loaded = json.load(file)
    slices = {(e["pid"], e["name"]): e for e in loaded["traceEvents"] if e.get("cat") == "instruction"}
    static_w = loaded["otherData"]["static_w"]
    assert len(blocks["blocks"]) == len(slices) == 16
    for block in blocks["blocks"]:
        event = slices[block["stage"], "%s%d" % (block["kind"], block["microbatch"])]
        start, end = event["ts"] / 1e6, (event["ts"] + event["dur"]) / 1e6
        assert close(block["start_s"], start) and close(block["end_s"], end), (block, event)
        assert close(block["power_w"], static_w + event["args"]["dynamic_j"] / (end - start)), (block, event)
    # Blocks and waiting fill the iteration on each stage; the critical path does so across stages but for
    # transfers.
    for stage in (0, 1):
        parts = [row for name in ("blocks", "waiting") for row in blocks[name] if row["stage"] == stage]
        assert close(sum(row["end_s"] - row["start_s"] for row in parts), variables["duration_s"])
    critical = sorted((row for row in blocks["blocks"] if row["critical"]), key=lambda row: row["start_s"])
    assert critical[0]["start_s"] == 0 and close(critical[-1]["end_s"], variables["duration_s"])
    for before, after in zip(critical, critical[1:]):
        assert 0 <= after["start_s"] - before["end_s"] < 0.01, (before, after)
    draw(folder, scenario, "timeline", suffixes=("svg", "png", "pdf"))

    _, blocks = script_of(scenario, "timeline", "--method", "nanobatching+perseus", "--zoom", "1:b2")
    rows = {row["row"] for row in blocks["spans"]}
    assert rows == {0, 1, 2} and any(0 < row["sms"] < 108 for row in blocks["spans"] if row["row"] == 1)
    draw(folder, scenario, "timeline", "--method", "nanobatching+perseus", "--zoom", "1:b2")
    # A later time gives a slower plan.
    fastest, _ = script_of(scenario, "timeline", "--method", "kareus")
    slower, _ = script_of(scenario, "timeline", "--method", "kareus", "--time", "%g" % (fastest["duration_s"] * 1.1))
    assert fastest["duration_s"] < slower["duration_s"] < fastest["duration_s"] * 1.12


def check_power(folder, scenario):
    variables, blocks = script_of(scenario, "power")
    report = {(r["section"], r["metric"]): float(r["value"])
              for r in read_rows(run("simulate", scenario, "--format", "csv").stdout)}
    assert close(variables["duration_s"], report["iteration", "time"])
    average = sum(row["average_w"] for row in blocks["averages"]) / 2
    assert close(average, report["power", "average_per_gpu"]), average
    assert close(max(row["peak_w"] for row in blocks["power"]), report["power", "peak_per_gpu"])
    for stage in (0, 1):
        bins = [row for row in blocks["power"] if row["stage"] == stage]
        assert close(sum(row["power_w"] for row in bins) / len(bins), blocks["averages"][stage]["average_w"])
        assert {row["clock_mhz"] for row in bins if row["clock_mhz"] == row["clock_mhz"]} == {1410}
    draw(folder, scenario, "power")


def check_breakdown(folder, scenario):
    _, blocks = script_of(scenario, "breakdown")
    report = {(r["section"], r["metric"]): float(r["value"])
              for r in read_rows(run("simulate", scenario, "--format", "csv").stdout)}
    parts = {(r["panel"], r["method"], r["part"]): r["value"] for r in blocks["parts"]}
    for part, name in enumerate(["gemm", "attention", "hbm_bound", "exposed_collective", "host_gap",
                                 "pipeline_bubble"]):
        assert close(parts[0, 0, part], report["time_breakdown", name]), name
    for part, name in ((0, "gemm"), (1, "attention"), (2, "hbm_bound"), (3, "collective"), (6, "static")):
        assert close(parts[1, 0, part], report["energy_breakdown", name]), name
    assert len(parts) == 2 * 4 * 7
    # The time of the other methods is that of their fastest plans.
    for method, name in ((1, "megatron+perseus"), (2, "nanobatching+perseus"), (3, "kareus")):
        fastest, _ = script_of(scenario, "timeline", "--method", name)
        assert close(sum(parts[0, method, part] for part in range(7)), fastest["duration_s"]), name
    draw(folder, scenario, "breakdown")


def check_heatmap(folder):
    grid, store = os.path.join(folder, "grid.ini"), os.path.join(folder, "grid.h5")
    write(grid, GRID)
    run("sweep", grid, "-q", "-o", store)
    where = "parallelism=tp8"
    table = run("show", store, "--format", "csv", "--where", where).stdout
    rows = read_rows(table)
    for value, source, more in (("energy_per_token_j", store, {}), ("time_s", store, {}),
                                ("mfu", "-", {"stdin": table})):
        arguments = (source, "heatmap", "--value", value) + (("--where", where) if source == store else ())
        _, blocks = script_of(*arguments, **more)
        x_values = [row["value"] for row in blocks["x_values"]]
        y_values = [row["value"] for row in blocks["y_values"]]
        assert x_values == [4096, 16384] and y_values == [2, 8, 16], (x_values, y_values)
        cells = {(x_values[int(c["x"])], y_values[int(c["y"])]): c for c in blocks["cells"]}
        assert len(cells) == len(rows) == 6
        for row in rows:
            cell = cells[int(row["seq_len"]), int(row["microbatch_size"])]
            assert cell["possible"] == (row["status"] == "ok")
            if row["status"] == "ok":
                assert close(cell["value"], float(row[value]), 1e-8), (cell, row)
        draw(folder, *arguments, **more)
    # The point that needs too much memory tells so.
    assert [r["text"] for r in blocks["reasons"]] == ["a: stage 1 needs ... GiB a GPU, NVIDIA A100-SXM4-40GB has 40"], \
        blocks["reasons"]
    assert cells[16384, 16]["label"] == "a" and not cells[16384, 16]["possible"]
    _, blocks = script_of(store, "heatmap", "--where", where, "--x", "microbatch_size", "--y", "seq_len")
    assert [row["value"] for row in blocks["x_values"]] == [2, 8, 16]

    assert fails("plot", store, "heatmap", "--script", status=2) == \
        "heatmap: several points for a cell of seq_len and microbatch_size; choose with --where, such as " \
        "'parallelism=tp8'"
    assert fails("plot", store, "heatmap", "--script", "--x", "nothing", status=2) == \
        "--x nothing: no such axis; there are seq_len, microbatch_size, parallelism"
    message = fails("plot", store, "heatmap", "--script", "--where", where, "--value", "status", status=2)
    assert message.startswith("--value status: not a column of numbers; there are point, seq_len, "), message
    assert fails("plot", store, "heatmap", "--script", "--where", "seq_len=1") == store + ": no points meet --where"
    assert fails("plot", store, "heatmap", "--script", "--where", "seq_len=4096 and parallelism=tp8", status=2) == \
        "heatmap: two axes of more than one value are needed; there are seq_len, microbatch_size, parallelism"
    return store


def check_frontier(folder, comparison, scenario, store):
    cells = read_rows(run("run", comparison, "--format", "csv").stdout)
    variables, blocks = script_of(comparison, "frontier")
    assert variables["n_panels"] == 2 and len(blocks["titles"]) == 2
    kareus = [c for c in cells if c["method"] == "kareus"]
    arrows = {(r["panel"], r["kind"]): r for r in blocks["arrows"]}
    for i, cell in enumerate(kareus):
        kind = "iso-time" if cell["metric"] == "iso_time_energy_reduction" else "iso-energy"
        arrow = arrows[i // 2, kind]
        a, b = ("from_kj", "to_kj") if kind == "iso-time" else ("from_s", "to_s")
        assert close(100 * (1 - arrow[b] / arrow[a]), float(cell["simulated_pct"]), 1e-3), (cell, arrow)
        assert arrow["label"].startswith("%+.1f %%" % -float(cell["simulated_pct"]))
        # The published one, where there is one, lies at the published share of the arrow's beginning.
        points = [p for p in blocks["published"] if p["panel"] == i // 2]
        if cell["published_pct"]:
            share = 1 - float(cell["published_pct"]) / 100
            x, y = ("energy_kj", "time_s") if kind == "iso-time" else ("time_s", "energy_kj")
            c, d = ("from_kj", "from_s") if kind == "iso-time" else ("from_s", "from_kj")
            assert any(close(p[x], arrow[c] * share) and close(p[y], arrow[d]) for p in points), (cell, points)
    assert len(blocks["published"]) == 3
    draw(folder, comparison, "frontier")

    _, blocks = script_of(scenario, "frontier")
    methods = [row["method"] for row in blocks["plans"]]
    assert [methods.count(m) for m in range(4)] == [1, 12, 12, 12], methods
    report = {(r["section"], r["metric"]): float(r["value"])
              for r in read_rows(run("simulate", scenario, "--format", "csv").stdout)}
    assert close(blocks["plans"][0]["time_s"], report["iteration", "time"])
    draw(folder, scenario, "frontier", suffixes=("svg", "png"))

    # A table of one's own: the arrows follow from its rows.
    table = ("method,time_s,energy_j\nmegatron,1,100\nmegatron+perseus,1,90\nmegatron+perseus,2,80\n"
             "kareus,0.9,85\nkareus,1.1,72\nkareus,1.5,70\n")
    _, blocks = script_of("-", "frontier", stdin=table)
    labels = [(r["kind"], r["label"]) for r in blocks["arrows"]]
    assert labels == [("iso-time", "-5.6 % energy"), ("iso-energy", "-45.0 % time")], labels
    draw(folder, "-", "frontier", stdin=table)
    assert fails("plot", "-", "frontier", "--script", stdin="method,time_s\nkareus,1\n") == \
        "standard input: no column energy_j: method, time_s and energy_j are needed"
    assert fails("plot", "-", "frontier", "--script", stdin=table.replace("kareus", "other")) == \
        "standard input: method 'other': megatron, megatron+perseus, nanobatching+perseus or kareus is needed"
    many = "point,method,time_s,energy_j\n" + "".join("%d,kareus,1,1\n" % i for i in range(13))
    assert fails("plot", "-", "frontier", "--script", stdin=many, status=2) == \
        "standard input: 13 workloads: a figure has room for 12; choose some with --where"
    script_of("-", "frontier", "--where", "point < 12", stdin=many)
    assert fails("plot", store, "frontier", "--script") == store + ": no plans of a frontier in it"

    # What `frontier` prints, and what a sweep of frontiers stores.
    text = run("frontier", scenario, "--method", "all", "--points", "6", "--format", "csv").stdout
    _, blocks = script_of("-", "frontier", stdin=text)
    wanted = sorted((float(r["time_s"]), float(r["energy_j"]) / 1e3) for r in read_rows(text))
    assert all(close(a[0], b[0]) and close(a[1], b[1]) for a, b in zip(
        wanted, sorted((r["time_s"], r["energy_kj"]) for r in blocks["plans"]), strict=True))
    sweep, stored = os.path.join(folder, "sweep.ini"), os.path.join(folder, "frontiers.h5")
    write(sweep, SCENARIO.replace("= tp4", "= tp4;tp8") % "a100-sxm4-40gb" +
          "[sweep]\nfrontiers = megatron+perseus;kareus\nbaseline = megatron+perseus\npoints = 5\n")
    run("sweep", sweep, "-q", "-o", stored)
    _, blocks = script_of(stored, "frontier")
    assert [r["title"] for r in blocks["titles"]] == ["tp4", "tp8"], blocks["titles"]
    rows = read_rows(run("show", stored, "frontiers", "--format", "csv").stdout)
    for panel in (0, 1):
        wanted = sorted(float(r["time_s"]) for r in rows if int(r["point"]) == panel)
        found = sorted(r["time_s"] for r in blocks["plans"] if r["panel"] == panel)
        assert len(wanted) == 10 and all(close(a, b) for a, b in zip(wanted, found, strict=True))
    draw(folder, stored, "frontier")
    _, blocks = script_of(stored, "frontier", "--where", "parallelism = tp8")
    assert [r["title"] for r in blocks["titles"]] == ["tp8"]
    assert fails("plot", stored, "frontier", "--script", "--where", "parallelism = x") == \
        stored + ": no plans of a frontier meet --where"


def check_tables(folder, comparison):
    text = run("run", comparison, "--format", "csv").stdout
    variables, blocks = script_of(comparison, "tables")
    published = [c for c in read_rows(text) if c["published_pct"] not in ("", "-")]
    assert len(blocks["cells"]) == len(published) == 5
    for row, cell in zip(blocks["cells"], published):
        for name in ("simulated_pct", "published_pct"):
            if cell[name] == "none":
                assert math.isnan(row[name])
            else:
                assert close(row[name], float(cell[name]), 1e-3), (row, cell)
        assert row["none_published"] == (cell["published_pct"] == "none")
        assert row["none_simulated"] == (cell["simulated_pct"] == "none" != cell["published_pct"])
    assert [row["rerun_pct"] for row in blocks["cells"] if row["rerun_pct"] == row["rerun_pct"]] == [4.5]
    assert len(blocks["rows"]) == 3 and variables["n_panels"] == 2
    draw(folder, comparison, "tables")

    _, piped = script_of("-", "tables", stdin=text)
    assert [[r["panel"], r["row"]] for r in piped["cells"]] == [[r["panel"], r["row"]] for r in blocks["cells"]]
    draw(folder, "-", "tables", stdin=text)
    bare = os.path.join(folder, "bare.ini")
    write(bare, "\n".join(l for l in COMPARISON.splitlines() if not l.startswith(("kareus", "nanob"))))
    assert fails("plot", bare, "tables", "--script") == bare + ": nothing of it was published: no cells to compare"
    line = [",kareus," in row for row in text.splitlines()].index(True) + 1
    assert fails("plot", "-", "tables", "--script", stdin=text.replace(",kareus,", ",karius,")) == \
        "standard input:%d: method, metric or a value is none that 'nanojoule run --format csv' writes" % line


def check_sensitivity(folder, scenario):
    variables, blocks = script_of(scenario, "sensitivity")
    names = [row["name"] for row in blocks["constants"]]
    moves = {(r["panel"], names[int(r["row"])]): r for r in blocks["moves"]}
    largest = [max(abs(moves[p, n][side]) for p in (0, 1) for side in ("low_points", "high_points")) for n in names]
    assert largest == sorted(largest, reverse=True) and close(largest[0], variables["span"])
    chosen = [name for name in names if not name.endswith("*")][0]
    # The move is what a GPU file with that constant changed gives.
    with open(GPU) as file:
        lines = file.read().splitlines()
    at = [i for i, line in enumerate(lines) if line.startswith(chosen + " = ")]
    assert len(at) == 1
    value = float(lines[at[0]].split(" = ")[1])
    changed, other = os.path.join(folder, "gpu.ini"), os.path.join(folder, "other.ini")
    for factor, side in ((1.1, "high_points"),):
        lines[at[0]] = "%s = %.12g" % (chosen, value * factor)
        write(changed, "\n".join(lines) + "\n")
        write(other, SCENARIO % changed)
        base, _ = script_of(other, "sensitivity")
        for panel, name in enumerate(("base_iso_time", "base_iso_energy")):
            move = base[name] - variables[name]
            assert math.isclose(move, moves[panel, chosen][side], abs_tol=1e-5), (chosen, side, move)
    draw(folder, scenario, "sensitivity")


def check_errors(folder, scenario, comparison):
    svg = os.path.join(folder, "x.svg")
    kinds = "frontier, timeline, power, breakdown, heatmap, tables, sensitivity"
    cases = [
        (2, (scenario, "pie", "-o", svg), "plot: unknown kind 'pie'; there are " + kinds),
        (2, (scenario, "power"), "plot: -o FILE or --script is needed"),
        (2, (scenario, "power", "-o", "x.gif"), "x.gif: a name that ends in .svg, .png or .pdf is needed"),
        (2, (scenario, "power", "--zoom", "0:F1", "-o", svg), "plot: power has no --zoom"),
        (2, (scenario, "power", "--time", "3", "-o", svg), "plot: --time is of the plan of --method: it is missing"),
        (2, (scenario, "power", "--method", "x", "-o", svg),
         "--method x: megatron, megatron+perseus, nanobatching+perseus or kareus is needed"),
        (2, (scenario, "power", "--jobs", "0", "-o", svg), "--jobs 0: 1 to 4096 threads are needed"),
        (2, (scenario, "timeline", "--zoom", "2:F1", "-o", svg),
         "--zoom 2:F1: a stage, then F or B and a microbatch, such as 0:F3, is needed; stages are 0 to 1, "
         "microbatches 0 to 3"),
        (2, ("x.txt", "power", "-o", svg),
         "x.txt: a store (.h5), a scenario or comparison (.ini), a table (.csv) or - is needed"),
        (2, (scenario, "heatmap", "-o", svg),
         scenario + ": is a scenario (.ini); plot heatmap reads a store (.h5) or a table (.csv or -)"),
        (2, (comparison, "power", "-o", svg),
         comparison + ": is a comparison (.ini); plot power reads a scenario (.ini)"),
        (1, (scenario, "power", "-o", "/nowhere/x.svg"), "/nowhere/x.svg: its folder does not exist"),
    ]
    for status, arguments, message in cases:
        assert fails("plot", *arguments, status=status) == message, (arguments, fails("plot", *arguments,
                                                                                    status=status))
    assert not os.path.exists(svg)

    # No gnuplot.
    assert fails("plot", scenario, "power", "-o", svg, environment={"PATH": folder}) == \
        "gnuplot cannot be run: Failed to execute child process “gnuplot” (No such file or directory); Debian has it " \
        "in the package gnuplot-nox"
    # A folder of scripts of one's own, one with a mistake; what was there stays.
    own = os.path.join(folder, "own")
    os.mkdir(own)
    assert fails("plot", scenario, "power", "-o", svg, environment={"NANOJOULE_PLOTS": own}) == \
        own + "/common.gp: cannot be read: Failed to open file “%s/common.gp”: No such file or directory" % own
    write(os.path.join(own, "common.gp"), "# mine\n")
    write(os.path.join(own, "power.gp"), "plot $power using 2:3\nbroken line\n")
    write(svg, "old")
    message = fails("plot", scenario, "power", "-o", svg, environment={"NANOJOULE_PLOTS": own})
    assert message.startswith("gnuplot failed: line ") and message.endswith(": invalid command"), message
    assert open(svg).read() == "old" and not os.path.exists(svg + ".part")
    write(os.path.join(own, "power.gp"), "plot $power using 2:3 with lines\n")
    run("plot", scenario, "power", "-o", svg, environment={"NANOJOULE_PLOTS": own})
    subprocess.run(["xmllint", "--noout", "--nonet", svg], check=True)
    os.chmod(svg, stat.S_IRUSR)
    assert fails("plot", scenario, "power", "-o", svg) == svg + ": is read-only"


with tempfile.TemporaryDirectory() as temporary:
    scenario_path = os.path.join(temporary, "scenario.ini")
    comparison_path = os.path.join(temporary, "comparison.ini")
    write(scenario_path, SCENARIO % "a100-sxm4-40gb")
    write(comparison_path, COMPARISON)
    check_script_alone(temporary, scenario_path)
    check_timeline(temporary, scenario_path)
    check_power(temporary, scenario_path)
    check_breakdown(temporary, scenario_path)
    check_frontier(temporary, comparison_path, scenario_path, check_heatmap(temporary))
    check_tables(temporary, comparison_path)
    check_sensitivity(temporary, scenario_path)
    check_errors(temporary, scenario_path, comparison_path)
