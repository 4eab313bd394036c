# SPDX-License-Identifier: MIT
"""The report page: well-formed, on its own, with the store's numbers; in a browser at a phone's width where there
is one.

Argument: the program."""
import csv
import io
import os
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree

from program import fails, run

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCENARIO = """# Grids & "quotes" <here>
[workload]
model = llama-3.2-1b
seq_len = 2048;16384
microbatch_size = 4;16;64
microbatches = 4
[cluster]
gpu = a100-sxm4-40gb;%s
parallelism = tp4
pipeline_stages = 2
[execution]
method = megatron
[sweep]
frontiers = megatron+perseus;kareus
baseline = megatron+perseus
points = 4
"""
XHTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def table_rows(table):
    head = [th.text for th in table.find(XHTML + "thead").iter(XHTML + "th")]
    return [dict(zip(head, (td.text or "" for td in tr))) for tr in table.find(XHTML + "tbody")]


def check_page(page, store, gpu):
    text = read(page)
    root = ElementTree.fromstring(text)
    # Nothing to fetch and nothing to run.
    for element in root.iter():
        assert element.tag not in (XHTML + "script", XHTML + "link", XHTML + "img", XHTML + "iframe"), element.tag
        for name, value in element.attrib.items():
            assert not name.startswith("on"), name
            if name.split("}")[-1] in ("href", "src"):
                assert value.startswith("#"), value
    assert "@import" not in text and "url(http" not in text
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    assert len(ids) == len(set(ids)) > 0
    # What figures refer to is there.
    used = set(re.findall(r"url\(#([^)]*)\)", text)) | set(re.findall(r"href=['\"]#([^'\"]*)", text))
    assert used and used <= set(ids), used - set(ids)

    headings = [h.text for h in root.iter(XHTML + "h2")]
    assert headings == ["Least energy of a token", "Around the point of least energy of a token", "Frontiers",
                        "All points", "Scenario", "Constants and where they come from"], headings
    rows = list(csv.DictReader(io.StringIO(run("show", store, "--format", "csv").stdout)))
    possible = sorted((row for row in rows if row["status"] == "ok"), key=lambda r: float(r["energy_per_token_j"]))
    assert 0 < len(possible) < len(rows) == 12
    assert len(list(root.iter(SVG + "svg"))) == 2 + min(len(possible), 4)
    best, points = root.iter(XHTML + "table")
    best, points = table_rows(best), table_rows(points)
    assert [row["point"] for row in best] == [row["point"] for row in possible][:10]
    assert [row["point"] for row in points] == [row["point"] for row in rows]
    for shown, row in zip(points, rows):
        assert shown["reason"] == row["reason"] and shown["status"] == row["status"]
        for name in ("time_s", "energy_j"):
            assert (shown[name] == "") == (row[name] == "")
            assert not row[name] or abs(float(shown[name]) - float(row[name])) < 0.051, (shown, row)

    pres = [pre.text for pre in root.iter(XHTML + "pre")]
    assert pres[0] == SCENARIO % gpu
    shipped = read(os.path.join(ROOT, "models", "gpus", "a100-sxm4-40gb.ini"))
    assert shipped in pres and "standard error" in shipped  # constants with their origin
    assert root.find(XHTML + "body/" + XHTML + "p").text.startswith("12 points of 12, %d of them" % len(possible))


def check_browser(page, folder):
    browser = shutil.which("chromium")
    if browser is None:
        print("skipped: no chromium: the page was not opened in a browser")
        return
    # A copy that measures itself; the page itself has no script. A browser's window has a least width, a frame
    # in it has not.
    measured, framed = os.path.join(folder, "measured.html"), os.path.join(folder, "framed.html")
    script = """<script>parent.postMessage([innerWidth, document.documentElement.scrollWidth,
      getComputedStyle(document.body).fontSize,
      ...[...document.querySelectorAll('svg')].map(s => Math.round(s.getBoundingClientRect().width))].join(' '),
      '*')</script></body>"""
    with open(measured, "w", encoding="utf-8") as file:
        file.write(read(page).replace("</body>", script))
    for width in (390, 1100):
        with open(framed, "w", encoding="utf-8") as file:
            file.write("""<body><script>onmessage = e => document.body.dataset.measured = e.data</script>
              <iframe src="measured.html" style="border:0;width:%dpx;height:800px"></iframe></body>""" % width)
        result = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
             "--user-data-dir=" + os.path.join(folder, "profile"), "--window-size=1300,900",
             "--virtual-time-budget=5000", "--dump-dom", "file://" + framed],
            capture_output=True, text=True, timeout=120, env={**os.environ, "MALLOC_PERTURB_": "0"})
        assert result.returncode == 0, result.stderr
        assert "CONSOLE" not in result.stderr, result.stderr
        inner, scrolled, size, *svgs = re.search(r'data-measured="([^"]*)"', result.stdout).group(1).split()
        # The page itself never scrolls sideways: tables and figures do, in their own boxes.
        assert int(inner) == width and int(scrolled) <= width and size == "16px", (width, inner, scrolled, size)
        assert len(svgs) >= 3 and all(500 <= int(svg) <= 1000 for svg in svgs), svgs


def check_errors(page, store, folder, gpu):
    assert fails("report", store, status=2) == "report: -o FILE is needed"
    assert fails("report", store, "-o", folder) == folder + ": is a folder; a file name is needed"
    assert fails("report", folder + "/none.h5", "-o", page) != ""
    before = read(page)
    message = fails("report", store, "-o", page, environment={"PATH": folder})
    assert message.endswith("Debian has it in the package gnuplot-nox"), message
    assert read(page) == before
    # Constants that are not those of the numbers any more are not shown as if they were.
    with open(gpu, "a") as file:
        file.write("# later\n")
    run("report", store, "-o", page)
    assert "This file has changed since the numbers were computed." in read(page)
    os.unlink(gpu)
    run("report", store, "-o", page)
    assert "This file is not there, seen from here." in read(page)


with tempfile.TemporaryDirectory() as temporary:
    gpu_path = os.path.join(temporary, "gpu.ini")
    shutil.copy(os.path.join(ROOT, "models", "gpus", "a100-sxm4-40gb.ini"), gpu_path)
    scenario, results = os.path.join(temporary, "s.ini"), os.path.join(temporary, "s.h5")
    with open(scenario, "w") as file:
        file.write(SCENARIO % gpu_path)
    run("sweep", scenario, "-q", "-o", results)
    html = os.path.join(temporary, "report.html")
    run("report", results, "-o", html)
    check_page(html, results, gpu_path)
    first = read(html)
    run("report", results, "-o", html)
    assert read(html) == first
    check_browser(html, temporary)
    check_errors(html, results, temporary, gpu_path)
