# SPDX-License-Identifier: MIT
"""The command line's contracts: exit status, messages, machine-readable output; calibration end to end.

Argument: the program."""
import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCENARIO = os.path.join(ROOT, "scenarios", "llama-3.2-3b-tp8.ini")
REPLAY_HEADER = ("plan_id,time_s,dynamic_energy_j,total_energy_j,"
                 "ref_time_s,ref_dynamic_energy_j,ref_total_energy_j")


def run(*arguments, stdout=subprocess.PIPE):
    return subprocess.run([PROGRAM, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def plan_row(name, method, freq_a, freq_b, time_s="", energy_j="", forward="", backward=""):
    """Two microbatches of Llama 3.2 1B on two stages."""
    stage0 = f"F{freq_a} F{freq_b} B{freq_a} B{freq_b}"
    stage1 = f"F{freq_b} B{freq_a} F{freq_b} B{freq_b}"
    return ",".join([name, method, "llama-3.2-1b", "1", "8", "8", "4096", "2", "2", time_s, energy_j, "", stage0, stage1,
                     f'"{forward} {forward} {backward} {backward}"' if forward else "",
                     f'"{forward} {backward} {forward} {backward}"' if forward else ""])


PLAN_HEADER = ("plan_id,method,model,cp,tp,microbatch_size,seq_len,pipeline_stages,microbatches,time_s,"
               "dynamic_energy_j,total_energy_j,stage0_freq_mhz,stage1_freq_mhz,stage0_launch,stage1_launch")


COMPARISON = """[comparison]
table = t
title = A table
gpu = a100-sxm4-40gb
pipeline_stages = 2
microbatches = 2
metrics = time_reduction
methods = nanobatching+perseus;kareus
[llama-3.2-1b tp8 8 x 2048]
"""


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name, text=None):
        path = os.path.join(self.folder.name, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def check(self, arguments, status, stderr=None, stdout=None):
        result = run(*arguments)
        self.assertEqual(result.returncode, status, (arguments, result.stdout, result.stderr))
        if stderr is not None:
            self.assertEqual(result.stderr, stderr)
        if stdout is not None:
            self.assertEqual(result.stdout, stdout)
        return result

    def test_usage(self):
        self.assertRegex(self.check(["--version"], 0, stderr="").stdout, r"\Ananojoule \d+\.\d+\.\d+\n\Z")
        top = self.check(["--help"], 0, stderr="").stdout
        names = re.findall(r"^  ([a-z]+) +\S", top.split("Commands:")[1], re.M)
        self.assertIn("simulate", names)
        for name in names:
            help_text = self.check([name, "--help"], 0, stderr="").stdout
            self.assertIn(f"nanojoule {name}", help_text)
            self.check([name, "--no-such-option"], 2, stdout="",
                       stderr=f"nanojoule: {name}: Unknown option --no-such-option\n"
                              f"Try 'nanojoule {name} --help'.\n")
        self.check([], 2, stdout="")
        self.check(["replay", "a", "b", "c"], 2, stdout="",
                   stderr="nanojoule: replay: too many arguments: usage: nanojoule replay PLANS.csv | FREQS.py "
                          "[SCHEDS.py]\nTry 'nanojoule replay --help'.\n")
        for command in "simulate", "replay":
            self.check([command, SCENARIO, "--format", "xml"], 2, stdout="",
                       stderr="nanojoule: --format xml: text, csv or json is needed\n")
        self.check(["simulat"], 2, stdout="", stderr="nanojoule: unknown command 'simulat'\nTry 'nanojoule --help'.\n")
        self.check(["simulate"], 2, stdout="",
                   stderr="nanojoule: simulate: an argument is missing: usage: nanojoule simulate SCENARIO\n"
                          "Try 'nanojoule simulate --help'.\n")
        self.check(["simulate", SCENARIO, SCENARIO], 2, stdout="")
        missing = self.path("none.ini")
        self.check(["simulate", missing], 1, stdout="", stderr=f"nanojoule: {missing}: No such file or directory\n")

    def test_an_option_and_its_value_in_one_word(self):
        tables = self.path("c.ini", COMPARISON)
        wanted = self.check(["run", tables, "--jobs", "2"], 0, stderr="").stdout
        self.check(["run", tables, "-j2"], 0, stderr="", stdout=wanted)
        self.check(["run", "-j", "2", tables], 0, stderr="", stdout=wanted)
        self.check(["run", tables, "-jx"], 2, stdout="",
                   stderr="nanojoule: run: Cannot parse integer value “x” for -j\nTry 'nanojoule run --help'.\n")
        self.check(["run", tables, "-j0"], 2, stdout="", stderr="nanojoule: run: --jobs: at least 1 is needed\n")
        # Behind "--" nothing is an option.
        self.check(["run", "--", "-j2"], 1, stdout="", stderr="nanojoule: -j2: No such file or directory\n")

    def test_run_on_a_terminal(self):
        """A bar while it runs and nothing of it in the result; Ctrl-C ends it with a message."""
        tables = self.path("c.ini", COMPARISON.replace("microbatches = 2", "microbatches = 600"))
        for interrupt in (False, True):
            ours, theirs = os.openpty()
            process = subprocess.Popen([PROGRAM, "run", tables, "-j1"], stdout=subprocess.PIPE, stderr=theirs, text=True)
            os.close(theirs)
            seen = b""
            while True:
                try:
                    data = os.read(ours, 4096)
                except OSError:  # the other end is closed
                    break
                if data and interrupt and b"frontiers" not in seen and b"frontiers" in seen + data:
                    process.send_signal(signal.SIGINT)
                seen += data
            os.close(ours)
            out = process.communicate()[0]
            self.assertIn(b" of 4 frontiers", seen)
            if interrupt:
                self.assertEqual((process.returncode, out), (1, ""))
                self.assertTrue(seen.endswith(b"nanojoule: stopped\r\n"), seen)
            else:
                self.assertEqual(process.returncode, 0)
                self.assertIn("llama", out.lower())

    def test_full_disk(self):
        table = self.path("plans.csv", "\n".join([PLAN_HEADER, plan_row("a", "megatron+perseus", 1410, 1200)]) + "\n")
        for arguments in (["simulate", SCENARIO], ["simulate", SCENARIO, "--format", "json"],
                          ["replay", table, "--format", "csv"], ["--help"], ["--version"], ["replay", "--help"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = run(*arguments, stdout=full)
            self.assertEqual((result.returncode, result.stderr),
                             (1, "nanojoule: standard output: cannot be written\n"), arguments)
        # A reader that has gone, as in `nanojoule ... | head -1`.
        reader, writer = os.pipe()
        os.close(reader)
        result = run("simulate", SCENARIO, stdout=writer)
        os.close(writer)
        self.assertNotEqual(result.returncode, 0)

    def test_files_that_cannot_be_read(self):
        missing, empty = self.path("none.csv"), self.path("empty.csv", "")
        text = self.path("s.ini", "no key file\n")
        for arguments, message in (
                (["simulate", text], f"{text}: Key file contains line “no key file” which is not a key-value pair, "
                                     "group, or comment"),
                (["simulate", self.folder.name], f"{self.folder.name}: Not a regular file"),
                (["replay", missing], f"Failed to open file “{missing}”: No such file or directory"),
                (["replay", empty], f"{empty}: empty: a header line with column names is needed")):
            self.check(arguments, 1, stdout="", stderr=f"nanojoule: {message}\n")

    def test_runs_anywhere(self):
        result = subprocess.run([PROGRAM, "simulate", SCENARIO, "--format", "csv"], cwd=self.folder.name, text=True,
                                capture_output=True, check=True)
        self.assertEqual(result.stdout, run("simulate", SCENARIO, "--format", "csv").stdout)

    def test_simulate(self):
        text = self.check(["simulate", SCENARIO], 0, stderr="").stdout
        self.assertIn("Llama 3.2 3B", text)
        rows = list(csv.DictReader(io.StringIO(self.check(["simulate", SCENARIO, "--format", "csv"], 0).stdout)))
        self.assertEqual(list(rows[0]), ["section", "metric", "unit", "value"])
        objects = json.loads(self.check(["simulate", SCENARIO, "--format", "json"], 0).stdout)
        self.assertEqual([o["metric"] for o in objects], [r["metric"] for r in rows])
        value = {(r["section"], r["metric"]): float(r["value"]) for r in rows}
        total = sum(v for (section, _), v in value.items() if section == "time_breakdown")
        self.assertAlmostEqual(total / value["iteration", "time"], 1, places=6)
        total = sum(v for (section, _), v in value.items() if section == "energy_breakdown")
        self.assertAlmostEqual(total / value["energy", "per_gpu"], 1, places=6)
        self.assertAlmostEqual(value["energy", "cluster"],
                               value["energy", "cluster_static"] + value["energy", "cluster_dynamic"], places=3)
        self.assertGreater(value["iteration", "hfu"], value["iteration", "mfu"])
        again = run("simulate", SCENARIO, "--format", "csv").stdout
        self.assertEqual(again, run("simulate", SCENARIO, "--format", "csv").stdout)

    def simulate(self, **execution):
        """The shipped scenario with other keys in [execution]: its report, and what it says of the clocks."""
        text = read(SCENARIO).split("[execution]")[0] + "[execution]\n"
        path = self.path("s.ini", text + "".join(f"{key} = {value}\n" for key, value in execution.items()))
        rows = csv.DictReader(io.StringIO(self.check(["simulate", path, "--format", "csv"], 0, stderr="").stdout))
        clocks = self.check(["simulate", path], 0).stdout.splitlines()[2].split(", ", 1)[1]
        return {(r["section"], r["metric"]): float(r["value"]) for r in rows}, clocks

    def test_simulate_clocks(self):
        unlocked, clocks = self.simulate(method="megatron")
        self.assertEqual(clocks, "clocks unlocked, at 1410 MHz")
        locked, clocks = self.simulate(method="megatron", frequency_mhz=1410)
        self.assertEqual(clocks, "all instructions at 1410 MHz")
        self.assertEqual(unlocked["iteration", "time"], locked["iteration", "time"])
        waiting_j = unlocked["energy_breakdown", "waiting"]
        self.assertGreater(waiting_j, 0)
        self.assertEqual(locked["energy_breakdown", "waiting"], 0)
        self.assertAlmostEqual(unlocked["energy", "per_gpu"], locked["energy", "per_gpu"] + waiting_j, places=3)

        # A method that plans is hardly slower than everything at the highest clock (its planner does not know of
        # transfers, and gives slack away that they take), and uses less.
        for method in ("megatron+perseus", "nanobatching+perseus", "kareus"):
            planned, clocks = self.simulate(method=method)
            self.assertEqual(clocks, "its fastest plan")
            uniform, _ = self.simulate(method=method, frequency_mhz=1410)
            self.assertLess(planned["iteration", "time"], 1.02 * uniform["iteration", "time"])
            self.assertLess(planned["energy", "cluster"], 0.97 * uniform["energy", "cluster"])
            later, clocks = self.simulate(method=method, deadline_s=5.5)
            self.assertEqual(clocks, "its plan of least energy within 5.5 s")
            self.assertLessEqual(later["iteration", "time"], 5.5)
            self.assertLess(later["energy", "cluster"], planned["energy", "cluster"])
            for report in (planned, uniform, later):
                parts = sum(v for (section, _), v in report.items() if section == "energy_breakdown")
                self.assertAlmostEqual(parts / report["energy", "per_gpu"], 1, places=6)

        text = read(SCENARIO).replace("method = megatron", "method = kareus\ndeadline_s = 1")
        path = self.path("s.ini", text)
        self.assertRegex(self.check(["simulate", path], 1, stdout="").stderr,
                         rf"^nanojoule: {path}: \[execution\] deadline_s = 1: no plan of kareus takes 1 s or less: the fastest takes 4\.\d+ s\n$")

    def test_simulate_another_architecture(self):
        config = self.path("config.json", json.dumps({
            "model_type": "llama", "hidden_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 24,
            "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 8192, "vocab_size": 128256}))
        own = run("simulate", SCENARIO, "--arch", config, "--format", "csv")
        self.assertEqual(own.returncode, 0, own.stderr)
        self.assertEqual(own.stdout, run("simulate", SCENARIO, "--format", "csv").stdout)
        wrong = self.check(["simulate", SCENARIO, "--arch", "qwen-9"], 1, stdout="")
        self.assertIn("[workload] model = qwen-9: qwen-9: not in models/archs; shipped: ", wrong.stderr)

    def frontier(self, path, *options):
        result = self.check(["frontier", path, "--format", "csv", *options], 0, stderr="")
        return list(csv.DictReader(io.StringIO(result.stdout)))

    def test_frontier(self):
        rows = self.frontier(SCENARIO, "--method", "all", "--points", "5")
        self.assertEqual(list(rows[0]), ["method", "plan", "time_s", "energy_j", "average_power_w", "planned_time_s",
                                         "planned_energy_j", "bound_gap_pct", "waiting_energy_j", "frequencies",
                                         "launches"])
        frontiers = {}
        for row in rows:
            frontiers.setdefault(row["method"], []).append(row)
        self.assertEqual([len(plans) for plans in frontiers.values()], [1, 5, 5, 5])
        for method, plans in frontiers.items():
            times = [float(plan["time_s"]) for plan in plans]
            self.assertEqual(times, sorted(times, reverse=True))
            for plan in plans:
                self.assertAlmostEqual(float(plan["average_power_w"]) * 16 * float(plan["time_s"]) /
                                       float(plan["energy_j"]), 1, places=6)
                stages = plan["frequencies"].split("|")
                self.assertEqual([len(stage.split()) for stage in stages], [16, 16])
                self.assertEqual(plan["launches"] != "", method == "kareus")
                if method != "megatron":
                    # Transfers between stages are what the planner leaves out.
                    self.assertGreater(float(plan["time_s"]), float(plan["planned_time_s"]))
                    self.assertGreaterEqual(float(plan["bound_gap_pct"]), -1e-6)
                    self.assertLess(float(plan["bound_gap_pct"]), 1)
        text = self.check(["frontier", SCENARIO, "--method", "all", "--points", "5"], 0, stderr="").stdout
        self.assertEqual(len(text.splitlines()), 1 + 16)

        # What is asked for by number is the row of that number.
        last = frontiers["kareus"][-1]
        (again,) = self.frontier(SCENARIO, "--method", "kareus", "--plan", last["plan"])
        self.assertEqual(again, last)
        text = self.check(["frontier", SCENARIO, "--method", "kareus", "--plan", last["plan"]], 0).stdout
        self.assertIn(f"kareus, plan {last['plan']}: ", text)
        self.assertIn("  stage 1  " + last["frequencies"].split("|")[1] + "\n", text)

    def test_frontier_of_a_time_or_an_energy(self):
        for method in ("megatron+perseus", "nanobatching+perseus", "kareus"):
            one = lambda *options: self.frontier(SCENARIO, "--method", method, *options)[0]
            plans = self.frontier(SCENARIO, "--method", method, "--points", "60")
            time = lambda plan: float(plan["time_s"])
            energy = lambda plan: float(plan["energy_j"])
            fastest, least = plans[-1], min(plans, key=energy)
            for latest in (time(fastest), 0.5 * (time(fastest) + time(least)), 100):
                found = one("--at-time", repr(latest))
                self.assertLessEqual(time(found), latest)
                in_time = min(energy(plan) for plan in plans if time(plan) <= latest)
                self.assertLess(energy(found), 1.002 * in_time)
                found = one("--at-energy", repr(energy(found)))
                self.assertLess(time(found), 1.002 * latest)
            self.assertEqual(one("--at-energy", "1e9"), fastest)
            # A straggler: between the plan of least energy and the slowest, waiting costs more than being slow.
            latest = time(least) + 0.5
            waiting, alone = one("--deadline", repr(latest)), one("--at-time", repr(latest))
            self.assertLessEqual(time(waiting), latest)
            self.assertGreater(time(waiting), time(alone))
            for plan in (waiting, alone):
                plan["until"] = energy(plan) + 16 * 85 * (latest - time(plan))
            self.assertAlmostEqual(float(waiting["waiting_energy_j"]), 16 * 85 * (latest - time(waiting)), places=3)
            self.assertLess(waiting["until"], alone["until"])
            message = self.check(["frontier", SCENARIO, "--method", method, "--at-time", "1"], 1, stdout="").stderr
            self.assertEqual(message, f"nanojoule: no plan of {method} takes 1 s or less: "
                                      f"the fastest takes {time(fastest):.6f} s\n")
            message = self.check(["frontier", SCENARIO, "--method", method, "--at-energy", "1"], 1, stdout="").stderr
            self.assertRegex(message, rf"^nanojoule: no plan of {re.escape(method)} uses 1 J or less: "
                                      r"the least is [\d.]+ J, in [\d.]+ s\n$")
            message = self.check(["frontier", SCENARIO, "--method", method, "--plan", "99999"], 1, stdout="").stderr
            self.assertEqual(message, f"nanojoule: {method}: --plan 99999: there are plans 0 (slowest) to "
                                      f"{fastest['plan']} (fastest)\n")

    def test_frontier_usage(self):
        for options, message in (
                (["--method", "magic"], "--method magic: all, megatron, megatron+perseus, nanobatching+perseus or "
                                        "kareus is needed"),
                (["--points", "0"], "--points: at least 1 is needed"),
                (["--plan", "-2"], "--plan: a number from 0 is needed"),
                (["--plan", "1", "--points", "3"], "--points asks for many plans, --plan for one"),
                (["--at-time", "nan"], "--at-time, --at-energy and --deadline: more than 0 is needed"),
                (["--at-energy", "-1"], "--at-time, --at-energy and --deadline: more than 0 is needed"),
                (["--at-time", "5", "--deadline", "5"], "only one of --at-time, --at-energy and --deadline can be met"),
                (["--at-time", "5", "--plan", "5"], "--points and --plan choose from the whole frontier, --at-time, "
                                                    "--at-energy and --deadline one plan of it")):
            self.check(["frontier", SCENARIO, *options], 2, stdout="", stderr=f"nanojoule: frontier: {message}\n")
        # Of all methods, those that can; alone, the one that cannot is a failure.
        path = self.path("s.ini", read(SCENARIO).replace("microbatch_size = 8", "microbatch_size = 1"))
        result = self.check(["frontier", path, "--method", "all", "--points", "2", "--format", "csv"], 0)
        methods = [row["method"] for row in csv.DictReader(io.StringIO(result.stdout))]
        self.assertEqual(methods, ["megatron"] + 2 * ["megatron+perseus"] + 2 * ["kareus"])
        self.assertRegex(result.stderr, r"^nanojoule: nanobatching\+perseus: .*at least 2 sequences.*\n$")
        self.assertEqual(self.check(["frontier", path, "--method", "nanobatching+perseus"], 1, stdout="").stderr,
                         result.stderr)

    def test_replay_of_written_plans(self):
        """Plans that frontier and solve wrote: what they say they take is what a replay of them takes."""
        for method in ("megatron+perseus", "nanobatching+perseus", "kareus"):
            scenario = self.path("s.ini", read(SCENARIO).replace("method = megatron", f"method = {method}"))
            folder = self.path(method)
            plans = self.frontier(scenario, "--points", "3", "-o", folder)
            names = sorted(os.listdir(folder))
            self.assertEqual(len(names), 6 if method == "kareus" else 3)
            for plan in plans:
                name = f"_pipeline_{int(plan['plan']):05d}.py"
                files = [os.path.join(folder, kind + name) for kind in ("freqs", "scheds")]
                (row,) = csv.DictReader(io.StringIO(self.check(
                    ["replay", *(files if method == "kareus" else files[:1]), "--scenario", scenario, "--format",
                     "csv"], 0, stderr="").stdout))
                for figure in ("time_s", "dynamic_energy_j", "total_energy_j"):
                    self.assertAlmostEqual(float(row[figure]) / float(row["ref_" + figure]), 1, places=6)
                self.assertAlmostEqual(float(row["time_s"]) / float(plan["planned_time_s"]), 1, places=6)
                # And a scenario that names the files executes that very plan.
                keys = f"method = {method}\nfreqs_file = {files[0]}\n"
                if method == "kareus":
                    keys += f"scheds_file = {files[1]}\n"
                named = self.path("named.ini", read(SCENARIO).replace("method = megatron\n", keys))
                report = csv.DictReader(io.StringIO(self.check(["simulate", named, "--format", "csv"], 0).stdout))
                time = next(float(r["value"]) for r in report if r["metric"] == "time")
                self.assertAlmostEqual(time, float(plan["time_s"]), places=7)

        # solve: a profile of a clock more and less, the instructions' real times.
        profile = self.path("p.csv", "stage,instruction,frequency,time,energy\n" + "".join(
            f"{stage},{kind},{freq},{time},{time * power}\n" for stage in (0, 1)
            for kind, base in (("forward", 0.1), ("backward", 0.3))
            for freq, time, power in ((1410, base, 300), (1200, base * 1.12, 250))))
        folder = self.path("solved")
        self.check(["solve", profile, "-m", "8", "-p", "85", "--step", "0.05", "-o", folder], 0, stderr="")
        names = sorted(os.listdir(folder))
        self.assertGreater(len(names), 3)
        scenario = self.path("s.ini", read(SCENARIO).replace("method = megatron", "method = megatron+perseus"))
        for name in names:
            path = os.path.join(folder, name)
            (row,) = csv.DictReader(io.StringIO(self.check(
                ["replay", path, "--scenario", scenario, "--format", "csv"], 0, stderr="").stdout))
            self.assertEqual(row["plan_id"], name)
            total_j = float(re.search(r"with P2P: ([\d.]+)", read(path))[1])
            self.assertAlmostEqual(float(row["ref_total_energy_j"]), total_j, places=6)
            slow = read(path).count("1200")
            self.assertTrue(5.25 / 1.2 < float(row["time_s"]) < 5.25 * 1.3 and slow <= 32, row)

    def test_replay(self):
        table = self.path("plans.csv", "\n".join([
            PLAN_HEADER, plan_row("a", "megatron+perseus", 1410, 1200, "1.5", "300"),
            plan_row("b", "nanobatching+perseus", 1410, 900),
            plan_row("c", "kareus", 1200, 900, forward="F:norm_0@12,norm_0@6",
                     backward="B:rope_0@12,norm_0@6,attn_0@3,activation_0@3"),
        ]) + "\n")
        out = self.check(["replay", table, "--format", "csv"], 0, stderr="").stdout
        self.assertEqual(out.splitlines()[0], REPLAY_HEADER)
        rows = {r["plan_id"]: r for r in csv.DictReader(io.StringIO(out))}
        self.assertEqual(rows["a"]["ref_time_s"], "1.5")
        self.assertEqual(rows["b"]["ref_time_s"], "")
        for row in rows.values():
            # 85 W on each of two stages
            self.assertAlmostEqual(float(row["total_energy_j"]),
                                   float(row["dynamic_energy_j"]) + 170 * float(row["time_s"]), places=4)
        self.check(["replay", table, "--format", "csv"], 0, stdout=out)  # the same bytes again
        self.assertIn("by configuration and method", self.check(["replay", table], 0).stdout)
        objects = json.loads(self.check(["replay", table, "--format", "json"], 0).stdout)
        self.assertEqual([o["plan_id"] for o in objects], list(rows))
        self.assertEqual(list(objects[0]), REPLAY_HEADER.split(",") + ["time_pct", "dynamic_pct", "total_pct"])
        for o in objects:
            self.assertAlmostEqual(o["time_s"], float(rows[o["plan_id"]]["time_s"]), places=6)
        self.assertAlmostEqual(objects[0]["time_pct"], 100 * (objects[0]["time_s"] / 1.5 - 1), places=5)
        self.assertIsNone(objects[1]["time_pct"])
        bad = self.path("bad.csv", read(table).replace("F1410", "F1405"))
        self.assertEqual(self.check(["replay", bad], 1).stderr,
                         "nanojoule: plan a: stage 0, instruction 0: frequency 1405 MHz: NVIDIA A100-SXM4-40GB has 900 "
                         "to 1410 MHz in steps of 30\n")

    def test_replay_of_the_tools_own_files(self):
        scenario = self.path("s.ini", read(SCENARIO).replace("microbatches = 8",
                                                                                     "microbatches = 2"))
        stage = "('forward', 1410), ('forward', 900), ('backward', 1200), ('backward', 1410)"
        last = "('forward', 1410), ('backward', 1410), ('forward', 900), ('backward', 1200)"
        freqs = self.path("freqs_pipeline_00007.py", f"[\n[{stage}],\n[{last}],\n]\n"
                          "# Iteration 7 cost change: 1.0\n# Iteration 7 total cost: 500.0\n"
                          "# Iteration 7 total cost with P2P: 670.0\n")
        out = self.check(["replay", freqs, "--scenario", scenario, "--format", "csv"], 0).stdout
        row = next(csv.DictReader(io.StringIO(out)))
        self.assertEqual((row["plan_id"], row["ref_time_s"], row["ref_dynamic_energy_j"]),
                         ("freqs_pipeline_00007.py", "1", "500"))
        f = "('forward', 'norm_0-none-12-1024', 'norm_0-none-6-1024')"
        b = "('backward', 'norm_0-none-12-1024', 'norm_0-none-6-1024', 'attn_0-none-3-1024', 'activation_0-none-3-1024')"
        scheds = self.path("scheds_pipeline_00007.py", f"[\n[{f}, {f}, {b}, {b}],\n[{f}, {b}, {f}, {b}],\n]\n")
        with_launches = self.check(["replay", freqs, scheds, "--scenario", scenario, "--format", "csv"], 0).stdout
        self.assertNotEqual(with_launches, out)
        self.check(["replay", freqs, scheds, "--scenario", scenario, "--format", "csv"], 0, stdout=with_launches)

        # The scenario is what was run: architecture, layers, GPU.
        def of(name, *changes):
            text = read(scenario)
            for old, new in changes:
                self.assertIn(old, text)
                text = text.replace(old, new)
            return run("replay", freqs, "--scenario", self.path(name, text), "--format", "csv")

        arch = self.path("own.ini", read(os.path.join(ROOT, "models", "archs", "llama-3.2-3b.ini")))
        gpu = read(os.path.join(ROOT, "models", "gpus", "a100-sxm4-40gb.ini"))
        slower = self.path("slower.ini", re.sub(r"(?m)^peak_tflop_s = .*", "peak_tflop_s = 200", gpu))
        self.assertEqual(of("a.ini", ("model = llama-3.2-3b", f"model = {arch}")).stdout, out)
        for changes in (("15;13", "13;15"),), (("gpu = a100-sxm4-40gb", f"gpu = {slower}"),):
            other = of("b.ini", *changes)
            self.assertEqual(other.returncode, 0, other.stderr)
            self.assertNotEqual(other.stdout, out)
        four = of("c.ini", ("pipeline_stages = 2", "pipeline_stages = 4"), ("15;13", "7;7;7;7"))
        self.assertEqual((four.returncode, four.stderr),
                         (1, "nanojoule: plan freqs_pipeline_00007.py: the plan has 2 stages, the pipeline 4\n"))

        for arguments, message in (
                ([freqs], f"replay: {freqs}: --scenario must say what this plan ran"),
                ([freqs, "--scenario", scenario, "--gpu", "a40"],
                 "replay: --gpu a40: the scenario of a FREQS.py plan says what it ran on"),
                (["plans.csv", scheds], f"replay: {scheds}: only a FREQS.py plan has a second file"),
                (["plans.csv", "--scenario", scenario],
                 f"replay: --scenario {scenario}: a plan table says itself what its plans ran")):
            self.check(["replay", *arguments], 2, stdout="", stderr=f"nanojoule: {message}\n")

    def test_replay_of_published_files(self):
        raw = os.path.join(os.environ.get("NJ_REFERENCE", ""), "raw")
        if not os.path.exists(raw):
            self.assertNotIn("CI", os.environ, "reference data is absent in CI")
            self.skipTest("no reference data at " + raw)
        arguments = [os.path.join(raw, name) for name in ("freqs_pipeline_02495.py", "scheds_pipeline_02495.py")]
        for names in arguments[:1], arguments:
            out = self.check(["replay", *names, "--scenario", SCENARIO, "--format", "csv"], 0, stderr="").stdout
            row = next(csv.DictReader(io.StringIO(out)))
            self.assertEqual(float(row["ref_time_s"]), 4.353)
        self.assertAlmostEqual(float(row["time_s"]) / 4.353, 1, delta=0.04)

    def synthetic_plans(self):
        """Plans and what a GPU with other constants would do: its file, and the table of its 'measurements'."""
        gpu = read(os.path.join(ROOT, "models", "gpus", "a100-sxm4-40gb.ini"))
        other = re.sub(r"(?m)^gemm_share = .*", "gemm_share = 0.7", gpu)
        other = re.sub(r"(?m)^gemm_w = .*", "gemm_w = 300", other)
        other = self.path("other.ini", other)
        rows = [(f"p{i}", m, a, b) for i, (m, a, b) in enumerate(
            (m, a, b) for m in ("megatron+perseus", "nanobatching+perseus")
            for a, b in ((1410, 1410), (1410, 1200), (1200, 1050), (1050, 900), (900, 900)))]
        plans = self.path("plans.csv", "\n".join([PLAN_HEADER] + [plan_row(*r) for r in rows]) + "\n")
        out = self.check(["replay", plans, "--gpu", other, "--format", "csv"], 0).stdout
        figures = {r["plan_id"]: r for r in csv.DictReader(io.StringIO(out))}
        table = [PLAN_HEADER] + [plan_row(*r, figures[r[0]]["time_s"], figures[r[0]]["dynamic_energy_j"]) for r in rows]
        return table, self.path("measured.csv", "\n".join(table) + "\n")

    def test_sweep_of_frontiers(self):
        text = read(SCENARIO).replace("microbatch_size = 8", "microbatch_size = 1;4")
        grid = self.path("grid.ini", text + "[sweep]\nfrontiers = megatron;nanobatching+perseus;megatron+perseus\n"
                         "points = 3\n")
        store = self.path("g.h5")
        self.check(["sweep", grid, "-o", store, "--quiet"], 0)
        out = self.check(["show", store, "frontiers", "--format", "csv"], 0).stdout
        rows = list(csv.DictReader(io.StringIO(out)))
        # One sequence cannot be cut into nanobatches.
        self.assertEqual([(r["point"], r["method"]) for r in rows],
                         [("0", "megatron"), ("0", "nanobatching+perseus")] + [("0", "megatron+perseus")] * 3
                         + [("1", "megatron")]
                         + [("1", "nanobatching+perseus")] * 3 + [("1", "megatron+perseus")] * 3)
        self.assertEqual((rows[1]["time_s"], rows[1]["plan"], rows[1]["number"]), ("", "", ""))
        self.assertIn("at least 2 sequences", rows[1]["reason"])
        # Against the fastest plan of Megatron-LM + Perseus, which is the last of its frontier.
        self.assertEqual((float(rows[4]["time_reduction_pct"]), float(rows[4]["energy_reduction_pct"])), (0, 0))
        self.assertAlmostEqual(float(rows[0]["energy_reduction_pct"]),
                               100 * (1 - float(rows[0]["energy_j"]) / float(rows[4]["energy_j"])), places=5)
        # The plan of a row is what frontier gives for its number.
        scenario = self.path("s.ini", read(SCENARIO).replace("microbatch_size = 8", "microbatch_size = 4"))
        (plan,) = self.frontier(scenario, "--method", rows[7]["method"], "--plan", rows[7]["number"])
        self.assertEqual((plan["time_s"], plan["energy_j"], plan["frequencies"]),
                         (rows[7]["time_s"], rows[7]["energy_j"], rows[7]["plan"]))
        # The best rows, with the axes of their points.
        best = lambda *options: list(csv.DictReader(io.StringIO(
            self.check(["best", store, "frontiers", "--format", "csv", *options], 0).stdout)))
        found = best("--by", "microbatch_size,method", "--metric", "energy_j")
        self.assertEqual(list(found[0]), ["point", "microbatch_size", "method", "number", "time_s", "energy_j"])
        for row in found:
            same = [float(r["energy_j"]) for r in rows if r["point"] == row["point"] and r["method"] == row["method"]]
            self.assertEqual(float(row["energy_j"]), min(same))
        self.assertEqual([(r["microbatch_size"], r["method"]) for r in found],
                         [("1", "megatron"), ("1", "megatron+perseus"), ("4", "megatron"),
                          ("4", "nanobatching+perseus"), ("4", "megatron+perseus")])
        (row,) = best("--metric", "energy_reduction_pct", "--largest", "--where", "microbatch_size = 4")
        self.assertEqual(float(row["energy_reduction_pct"]),
                         max(float(r["energy_reduction_pct"]) for r in rows if r["point"] == "1"))
        self.assertEqual(self.check(["best", store, "frontiers", "--deadline", "0.01"], 1).stderr,
                         f"nanojoule: {store}: no row has energy_j and meets time_s <= 0.01\n")
        self.assertEqual(self.check(["best", store, "scenario"], 2).stderr,
                         "nanojoule: a table with a row for points is needed: points or frontiers\n")
        bad = self.path("bad.ini", text + "[sweep]\nfrontiers = magic\n")
        self.assertEqual(self.check(["sweep", bad, "-o", store], 1).stderr,
                         f"nanojoule: {bad}: [sweep] frontiers = magic: up to four of megatron, megatron+perseus, "
                         "nanobatching+perseus and kareus, separated by ';', are needed\n")

    def test_simulate_planned_methods(self):
        text = read(SCENARIO)

        def simulate(**changes):
            path = self.path("s.ini", "".join(text.replace("method = megatron", "method = " + changes.pop("method"))
                                              if i == 0 else f"{k} = {v}\n" for i, (k, v) in
                                              enumerate([("", "")] + list(changes.items()))))
            rows = csv.DictReader(io.StringIO(self.check(["simulate", path, "--format", "csv"], 0).stdout))
            return {(r["section"], r["metric"]): float(r["value"]) for r in rows}

        unlocked, locked = simulate(method="megatron"), simulate(method="megatron", frequency_mhz=1410)
        self.assertGreater(unlocked["energy_breakdown", "waiting"], 0)
        self.assertEqual(locked["energy_breakdown", "waiting"], 0)
        self.assertEqual(unlocked["iteration", "time"], locked["iteration", "time"])
        planned = simulate(method="megatron+perseus")
        self.assertLess(planned["energy", "cluster"], locked["energy", "cluster"])
        slow = simulate(method="megatron+perseus", deadline_s=6)
        self.assertLess(slow["energy", "cluster"], planned["energy", "cluster"])

    def test_run_of_the_published_tables(self):
        out = self.check(["run", os.path.join(ROOT, "scenarios", "paper.ini"), "--format", "csv"], 0, stderr="").stdout
        self.assertEqual(out.splitlines()[0], "table,model,parallelism,microbatch_size,seq_len,method,metric,"
                                              "simulated_pct,published_pct")
        rows = list(csv.DictReader(io.StringIO(out)))
        published = {tuple(list(r.values())[:7]): r["published_pct"] for r in rows if r["published_pct"]}
        self.assertEqual(len(published), 52)
        for row in rows:
            self.assertTrue(row["simulated_pct"] == "none" or float(row["simulated_pct"]) < 100, row)
        # The cells typed into the scenarios are the published ones.
        reference = os.path.join(os.environ.get("NJ_REFERENCE", ""), "paper_cells.csv")
        if not os.path.exists(reference):
            self.assertNotIn("CI", os.environ, "reference data is absent in CI")
            self.skipTest("no reference data at " + reference)
        with open(reference, encoding="utf-8") as file:
            for cell in csv.DictReader(file):
                key = tuple(cell[k] for k in ("table", "model", "parallelism", "microbatch_size", "seq_len", "method",
                                              "metric"))
                if cell["published_pct"] == "none":
                    self.assertEqual(published[key], "none", key)
                else:
                    self.assertAlmostEqual(float(published[key]), float(cell["published_pct"]), msg=key)
        wrong = self.path("wrong.ini", read(os.path.join(ROOT, "scenarios", "paper-max-throughput.ini")).replace(
            "kareus = 12.3;19.6", "kareus = 12.3"))
        self.assertIn("[llama-3.2-3b tp8 8 x 4096] kareus = 12.3: 2 values (a number, none or -), one a metric, separated "
                      "by ';', are needed", self.check(["run", wrong], 1).stderr)

    def test_calibrate_finds_constants_back(self):
        _, measured = self.synthetic_plans()
        fitted = self.path("fitted.ini")
        arguments = ["calibrate", measured, "--gpu", "a100-sxm4-40gb", "--free", "gemm_share,gemm_w,network_latency_us"]
        out = self.check(arguments + ["-j", "2", "-o", fitted], 0).stdout
        self.assertEqual(out, self.check(arguments + ["-j", "1"], 0).stdout)  # the same for any number of threads
        text = read(fitted)
        self.assertAlmostEqual(float(re.search(r"(?m)^gemm_share=(.*)", text)[1]), 0.7, delta=0.005)
        self.assertAlmostEqual(float(re.search(r"(?m)^gemm_w=(.*)", text)[1]), 300, delta=6)
        self.assertRegex(out, r"network_latency_us .* no: kept")
        self.assertIn("fitted to measured.csv on ", text)
        self.assertEqual(run("replay", measured, "--gpu", fitted).returncode, 0)

    def test_calibrate_refuses(self):
        table, measured = self.synthetic_plans()
        output = self.path("never.ini")

        def refused(lines, message, *more, status=1):
            path = self.path("bad.csv", "\n".join(lines) + "\n")
            result = self.check(["calibrate", path, "--gpu", "a100-sxm4-40gb", "-o", output, *more], status)
            self.assertIn(message.replace("PATH", path), result.stderr)
            self.assertFalse(os.path.exists(output))

        zero = [re.sub(r",2,2,[^,]+,", ",2,2,0,", table[1])]
        refused(table[:1] + zero + table[2:], "bad.csv:2: ")
        nan = [re.sub(r",2,2,[^,]+,", ",2,2,nan,", table[1])]
        refused(table[:1] + nan + table[2:], "bad.csv:2: ")
        refused(table[:3], "4 measurements for ", status=1)
        twice = re.sub(r",2,2,([^,]+),", lambda m: f",2,2,{float(m[1]) * 1.2:.6f},", table[1].replace("p0", "q0"))
        refused(table[:2] + [twice], "PATH:3: the plan of line 2 again, with time_s 20.0 % off")
        refused(["a,b", "1,2"], "PATH:1: a header of no known form of measurements")
        refused(table, "--free gemm_shares: no such constant", "--free", "gemm_shares", status=2)
        refused(table, "--cross-validate: all measurements are of one configuration (llama-3.2-1b tp8 8 x 4096); with it left "
                "out nothing is left to fit: at least two are needed", "--cross-validate", "--free", "gemm_share")
        self.check(["calibrate", measured], 2, stdout="")

    def test_calibrate_output(self):
        """What cannot be written is said before the fit; only a regular file is ever replaced."""
        _, measured = self.synthetic_plans()
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        for output, what in ((self.folder.name, "is a folder; a file name is needed"),
                             (self.path("none/x.ini"), "its folder does not exist"), (pipe, "is not a regular file")):
            self.check(["calibrate", measured, "--gpu", "a100-sxm4-40gb", "-o", output], 1, stdout="",
                       stderr=f"nanojoule: {output}: {what}\n")

    def test_calibrate_of_an_instruction_profile(self):
        profile = self.path("profile.csv", "stage,instruction,frequency,time,energy\n" + "".join(
            f"{s},{k},{f},{0.1 * t},{30 * t}\n" for s in (0, 1) for k, t in (("forward", 1), ("backward", 3))
            for f in (1410, 1200)))
        self.check(["calibrate", profile, "--gpu", "a100-sxm4-40gb"], 2, stdout="",
                   stderr=f"nanojoule: calibrate: {profile} is an instruction profile: --scenario must say what was run\n")
        out = self.check(["calibrate", profile, "--gpu", "a100-sxm4-40gb", "--scenario", SCENARIO, "--free",
                          "gemm_share,gemm_w", "-j", "2"], 0).stdout
        self.assertIn("stage 1 backward", out)
        wrong = self.path("wrong.csv", "stage,instruction,frequency,time,energy\n0,forward,1000,1,1\n0,backward,1000,1,1\n")
        result = self.check(["calibrate", wrong, "--gpu", "a100-sxm4-40gb", "--scenario", SCENARIO], 1)
        self.assertIn("wrong.csv:2: frequency = 1000: NVIDIA A100-SXM4-40GB has 900 to 1410 MHz in steps of 30",
                      result.stderr)

    def test_calibrate_of_single_kernels(self):
        header = "kernel,m,n,k,bytes,gpus,sms,frequency,time,power\n"
        rows = [f"gemm,8192,8192,{k},,,,{f},{2 * 8192 * 8192 * k / 200e12 * 1410 / f + 4e-6},{p}"
                for k in (2048, 4096, 8192) for f, p in ((1410, 380), (1200, 300), (900, 220))]
        rows += [f"memory,,,,{b},,,{f},{b / 1.2e12 + 4e-6}," for b in (1e8, 4e8) for f in (1410, 1200)]
        rows += [f"all_reduce,,,,{b},8,24,1410,{1.75 * b / 180e9 + 1e-4}," for b in (5e7, 2e8)]
        kernels = self.path("kernels.csv", header + "\n".join(rows) + "\n")
        fitted = self.path("fitted.ini")
        out = self.check(["calibrate", kernels, "--gpu", "a100-sxm4-40gb", "-j", "2", "-o", fitted,
                          "--free", "gemm_share,hbm_efficiency,allreduce_share,gemm_w"], 0).stdout
        for name in ("gemm", "memory", "all_reduce"):
            error = float(re.search(rf"(?m)^{name} +\d+ +(\S+) +(\S+)", out)[2])
            self.assertLess(error, 9, out)  # priors pull, and these are few rows
        for row, message in (
                ("conv,1,1,1,,,,1410,1,", "kernel = 'conv': gemm, memory, all_reduce, all_gather or reduce_scatter is needed"),
                ("gemm,1,1,,,,,1410,1,", "k: missing; a gemm row needs it"),
                ("gemm,1,1,1,,,,1000,1,", "frequency = 1000: NVIDIA A100-SXM4-40GB has 900 to 1410 MHz in steps of 30"),
                ("gemm,1,1,1,,,,1410,0,", "time: a measurement must be a number above 0"),
                ("all_reduce,,,,1000,16,,1410,1,", "gpus = '16': an integer from 2 to 8 is needed")):
            bad = self.path("bad.csv", header + row + "\n")
            self.assertEqual(self.check(["calibrate", bad, "--gpu", "a100-sxm4-40gb"], 1).stderr,
                             f"nanojoule: {bad}:2: {message}\n")

    def test_calibrate_interrupted_writes_nothing(self):
        table, _ = self.synthetic_plans()
        shorter = [re.sub(r"^p(\d+),(.*?),8,4096,", r"q\1,\2,4,4096,", row) for row in table[1:]]
        self.assertNotEqual(shorter, table[1:])
        measured = self.path("two.csv", "\n".join(table + shorter) + "\n")  # of two configurations
        output = self.path("never.ini")
        process = subprocess.Popen([PROGRAM, "calibrate", measured, "--gpu", "a100-sxm4-40gb", "--fix", "network_latency_us",
                                    "--cross-validate", "-j", "1", "-o", output, "--free",
                                    "gemm_share,gemm_w,hbm_efficiency,hbm_w,clock_w,volt_linear"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn("calibrate: round 1", process.stderr.readline())  # it is at work
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate()
        self.assertEqual(process.returncode, 1, stderr)
        self.assertIn("nanojoule: stopped; nothing was written", stderr)
        self.assertFalse(os.path.exists(output))


if __name__ == "__main__":
    unittest.main(verbosity=1)
