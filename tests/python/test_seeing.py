"""Dumps, source lines, why something was compiled, recorded events, and the HTML report."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from threads import run_in_threads

import torch_xla
import torch_xla.debug as debug
from torch_xla.debug import _page

DEVICE = torch.device("xla")


@pytest.fixture
def ir_debug():
    debug.set_ir_debug(True)
    yield
    debug.set_ir_debug(False)


@pytest.fixture
def recording():
    debug.start_recording()
    yield
    debug.stop_recording()
    debug.set_ir_debug(False)


def line_before() -> int:
    """The line before the one that calls this."""
    return sys._getframe(1).f_lineno - 1


def one_line(tensor: torch.Tensor, op: str) -> str:
    (line,) = (line for line in debug.tensors_text([tensor]).splitlines() if op in line)
    return line


# --- dumps ------------------------------------------------------------------------------------------------------------


def test_text_has_a_line_for_each_node():
    x = torch.ones(2, 3, device=DEVICE)
    torch_xla.sync()
    text = debug.tensors_text([(x @ x.new_ones(3, 4)).sum()])
    assert re.fullmatch(r"IR \{\n(  %\d+ = .*\n)+\}\n", text)
    assert re.search(r"%\d+ = f32\[2,4\]\{1,0\} aten::mm\(%\d+, %\d+\)\n", text)
    assert "xla::device_data(), device=xla:0" in text
    assert text.count("ROOT=0") == 1


def test_hlo_and_dot():
    x = torch.ones(2, 3, device=DEVICE)
    assert "stablehlo.add" in debug.tensors_hlo([x + 1])
    dot = debug.tensors_dot([x + 1])
    assert dot.startswith("digraph") and "aten::add" in dot and "->" in dot


@pytest.mark.parametrize("form, expected", [(None, "IR {"), ("hlo", "stablehlo.add"), ("dot", "digraph")])
def test_graphs_are_saved_before_they_are_compiled(run_python, tmp_path, form, expected):
    path = tmp_path / "graphs"
    program = """
import torch, torch_xla
for size in (2, 3, 2):
    y = torch.ones(size, device="xla") + 1
    torch_xla.sync()
"""
    run_python(program, XLA_SAVE_TENSORS_FILE=str(path), **({"XLA_SAVE_TENSORS_FMT": form} if form else {}))
    text = path.read_text()
    # Three cuts, but the third graph is known.
    assert text.count(expected) == 2


def test_a_wrong_form_is_an_error(run_python, tmp_path):
    program = """
import torch, torch_xla
y = torch.ones(3, device="xla") + 1
try:
    torch_xla.sync()
except ValueError as error:
    print(error)
"""
    environment = {"XLA_SAVE_TENSORS_FILE": str(tmp_path / "graphs"), "XLA_SAVE_TENSORS_FMT": "xml"}
    assert "XLA_SAVE_TENSORS_FMT: expected text, hlo or dot, got xml" in run_python(program, **environment)


# --- source lines -----------------------------------------------------------------------------------------------------


def test_no_lines_unless_asked_for():
    assert "location=" not in debug.tensors_text([torch.ones(2, device=DEVICE) + 1])


def test_lines_are_those_of_the_calls(ir_debug):
    x = torch.ones(2, device=DEVICE)
    made = line_before()
    y = torch.cos(x)
    called = line_before()
    name = Path(__file__).name
    assert f"location=test_lines_are_those_of_the_calls@{name}:{made}" in one_line(y, "aten::fill")
    assert one_line(y, "aten::cos").endswith(f"location=test_lines_are_those_of_the_calls@{name}:{called}, ROOT=0")


def test_library_code_is_passed_over(ir_debug):
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()).to(DEVICE)
    out = model(torch.ones(1, 3, device=DEVICE))
    called = line_before()
    assert f"test_library_code_is_passed_over@{Path(__file__).name}:{called}" in one_line(out, "aten::relu")


def test_lines_of_a_module_and_of_uploads(ir_debug):
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sin(x)

    x = torch.ones(3).to(DEVICE)
    out = Model()(x)
    assert "location=forward@" in one_line(out, "aten::sin")
    assert "location=test_lines_of_a_module_and_of_uploads@" in one_line(out, "xla::device_data")


def test_location_comes_before_other_attributes(ir_debug):
    values, _ = torch.ones(4, device=DEVICE).sort(descending=True)
    line = one_line(values, "aten::sort")
    assert line.index("num_outputs=2") < line.index("location=") < line.index("descending=")


def location_of(tensor: torch.Tensor, op: str) -> str:
    return re.search(r"location=([^,\s]+)", one_line(tensor, op)).group(1)


def test_a_backward_has_the_lines_of_its_forward(ir_debug):
    x = torch.ones(3, device=DEVICE, requires_grad=True)
    y = torch.cos(x)
    called = line_before()
    torch.tanh(y).sum().backward()
    here = f"test_a_backward_has_the_lines_of_its_forward@{Path(__file__).name}"
    assert location_of(x.grad, "aten::sin") == f"{here}:{called}"
    assert location_of(x.grad, "aten::tanh_backward") == f"{here}:{called + 2}"


def test_a_backward_whose_forward_had_no_lines_has_the_line_that_called_it():
    x = torch.ones(3, device=DEVICE, requires_grad=True)
    y = torch.cos(x).sum()
    debug.set_ir_debug(True)
    y.backward()
    called = line_before()
    debug.set_ir_debug(False)
    here = f"test_a_backward_whose_forward_had_no_lines_has_the_line_that_called_it@{Path(__file__).name}"
    assert location_of(x.grad, "aten::sin") == f"{here}:{called}"


def test_lines_of_a_second_derivative(ir_debug):
    x = torch.ones(3, device=DEVICE, requires_grad=True)
    y = torch.sin(x)
    called = line_before()
    (grad,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(grad.sum(), x)
    assert location_of(second, "aten::sin") == f"test_lines_of_a_second_derivative@{Path(__file__).name}:{called}"


def test_lines_of_a_recomputation(ir_debug):
    def part(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) * 2

    x = torch.ones(3, device=DEVICE, requires_grad=True)
    torch_xla.sync()
    torch.utils.checkpoint.checkpoint(part, x, use_reentrant=False).sum().backward()
    # The gradient of tanh reads the result that was computed again.
    assert "location=part@" in one_line(x.grad, "aten::tanh(")


def test_the_same_program_with_and_without_lines(compiles):
    def step() -> None:
        torch_xla.sync()
        y = torch.ones(7, device=DEVICE) * 3  # noqa: F841
        torch_xla.sync()

    step()
    before = compiles()
    debug.set_ir_debug(True)
    step()
    debug.set_ir_debug(False)
    assert compiles() == before


def test_threads_record_their_own_lines(ir_debug):
    texts = {}

    def work(name: str) -> None:
        x = torch.ones(3, device=DEVICE)
        for _ in range(50):
            x = torch.cos(x)
        texts[name] = debug.tensors_text([x])

    run_in_threads([lambda i=i: work(str(i)) for i in range(3)])
    assert len(texts) == 3
    assert all(text.count("location=work@") >= 50 for text in texts.values())


# --- why something was compiled ---------------------------------------------------------------------------------------

SCRIPT = """
import torch, torch_xla

weight = torch.ones(784, 10).to("xla")

def train(size):
    out = torch.relu(torch.ones(size, 784).to("xla") @ weight)
    return out

def loop():
    kept = train(128)
    torch_xla.sync()
    kept = train(128)
    torch_xla.sync()
    kept = train(96)
    kept.sum().item()
    kept = torch.cos(train(96))
    print(kept[0, 0])
    torch.linalg.eigvals(kept[:10])

loop()
"""


def run_script(tmp_path: Path, text: str, **environment: str) -> str:
    import os

    path = tmp_path / "train.py"
    path.write_text(text)
    done = subprocess.run(
        [sys.executable, str(path)], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_every_cut_is_printed_with_its_cause(tmp_path):
    lines = run_script(tmp_path, SCRIPT, PT_XLA_DEBUG="1", XLA_IR_DEBUG="1").splitlines()
    cuts = [line for line in lines if line.startswith("torch_xla: cut by ")]
    assert cuts[0].startswith("torch_xla: cut by sync, at loop@train.py:12: ")
    assert cuts[1].startswith("torch_xla: cut by sync, at loop@train.py:14: ")
    assert cuts[2].startswith("torch_xla: cut by .item(), at loop@train.py:16: ")
    assert cuts[3].startswith("torch_xla: cut by print, at loop@train.py:18: ")


def test_every_compile_is_printed_with_the_difference(tmp_path):
    lines = run_script(tmp_path, SCRIPT, PT_XLA_DEBUG="1", XLA_IR_DEBUG="1").splitlines()
    compiles = [line for line in lines if line.startswith("torch_xla: compiled program ")]
    assert compiles[0].endswith("the first program of the process")
    assert (
        "`aten::mm` input 0 was [128, 784], is [96, 784], at train@train.py:7 (compared with program 0)" in compiles[1]
    )


def test_a_fallback_names_its_operator(tmp_path):
    script = """
import torch, torch_xla
x = torch.eye(3, device="xla") * 2
torch.nonzero(x)
"""
    stderr = run_script(tmp_path, script, PT_XLA_DEBUG="1")
    assert "cut by fallback aten::nonzero, at <module>@train.py:4" in stderr


def test_nothing_is_printed_unless_asked_for(tmp_path):
    assert "torch_xla:" not in run_script(tmp_path, SCRIPT)


def test_executables_tell_cause_and_explanation(compiles):
    compiles()
    y = torch.ones(3, 5, device=DEVICE).cumsum(1).cos().sin()
    torch_xla.sync()
    line = line_before()
    program = debug.executables()[-1]
    assert program["cause"] == f"sync, at test_executables_tell_cause_and_explanation@{Path(__file__).name}:{line}"
    assert program["explanation"] and program["num_outputs"] == 1
    del y


def test_a_program_by_number():
    y = torch.ones(11, device=DEVICE) + 2
    torch_xla.sync(wait=True)
    assert len(debug.optimized_hlo(debug.executables()[-1]["id"])) > 0
    with pytest.raises(ValueError, match="program 123456 is not in memory"):
        debug.optimized_hlo(123456)
    del y


def test_errors_of_a_run_name_the_cut():
    import torch_xla._XLAC as xlac

    # The record that such an error quotes.
    y = torch.ones(13, device=DEVICE) * 2
    torch_xla.sync(wait=True)
    assert xlac.executables()[-1].cause.startswith("sync, at test_errors_of_a_run_name_the_cut@")
    del y


# --- events -----------------------------------------------------------------------------------------------------------


def test_events_of_a_step(recording):
    x = torch.ones(64).to(DEVICE)
    (x * 2 + 1).sum().item()
    torch_xla._XLAC.wait_device_ops()
    events = torch_xla._XLAC.recorded_events()
    kinds = [event.kind for event in events]
    for kind in ("upload", "record", "cut", "execute", "download"):
        assert kind in kinds
    assert all(0 <= event.begin_ns <= event.end_ns for event in events)
    (upload,) = (event for event in events if event.kind == "upload" and event.bytes == 256)
    assert upload.program == -1
    (cut,) = (event for event in events if event.kind == "cut")
    assert cut.cause.startswith(".item(), at test_events_of_a_step@")
    assert cut.program in [program["id"] for program in debug.executables()]


def test_no_events_unless_asked_for():
    debug.start_recording()
    debug.stop_recording()
    (torch.ones(3, device=DEVICE) * 2).sum().item()
    assert torch_xla._XLAC.recorded_events() == [] and not debug.is_recording()
    debug.set_ir_debug(False)


# --- report -----------------------------------------------------------------------------------------------------------


def embedded(path: Path) -> dict:
    text = path.read_text(encoding="utf-8")
    (data,) = re.findall(r"^const DATA = (.*);$", text, re.MULTILINE)
    return json.loads(data)


TRAINING = """
import sys
import torch, torch_xla
import torch_xla.debug as debug

# More programs than a report keeps graphs of, larger than those below; they do not run while it is recorded.
for size in range(10):
    y = torch.ones(size + 1, device="xla")
    for _ in range(60):
        y = torch.cos(y)
    torch_xla.sync()

model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).to("xla")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
debug.start_recording()
for _ in range(3):
    optimizer.zero_grad()
    x = torch.ones(4, 16, device="xla")
    torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).sum().backward()
    optimizer.step()
    torch_xla.sync(wait=True)
debug.report(sys.argv[1], title="a <script> & more")
"""


@pytest.fixture
def training_report(tmp_path: Path) -> Path:
    """The report on a short training, in a process of its own: it holds the programs of the whole process."""
    script, path = tmp_path / "train.py", tmp_path / "report.html"
    script.write_text(TRAINING)
    done = subprocess.run([sys.executable, str(script), str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return path


def test_report_holds_programs_events_and_graphs(training_report):
    data = embedded(training_report)
    assert data["title"] == "a <script> & more"
    assert {event[0] for event in data["events"]} >= {"record", "cut", "execute"}
    program = data["programs"][-1]
    assert program["runs"] >= 1 and program["cause"] and program["why"]
    graphs = [program["graph"] for program in data["programs"] if program["graph"]]
    for graph in graphs:
        for i, node in enumerate(graph["nodes"]):
            assert all(-len(graph["parameters"]) <= operand < i for operand in node[6])
    assert any(node[4] for graph in graphs for node in graph["nodes"]), "no operator is marked as computed again"
    assert any("@train.py:" in line for graph in graphs for line in graph["lines"])


def test_report_needs_no_network(tmp_path):
    path = tmp_path / "report.html"
    debug.report(path)
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)\s*=|@import|url\(|fetch\(|XMLHttpRequest""", text)
    assert "https:" not in text.replace("http://www.w3.org/2000/svg", "")


def test_report_of_a_script(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, torch, torch_xla\n"
        "assert __name__ == '__main__' and sys.argv[1:] == ['--size', '3']\n"
        "print((torch.ones(3, device='xla') * 2).sum().item())\n"
        "sys.exit(3)\n"
    )
    path = tmp_path / "out.html"
    done = subprocess.run(
        [sys.executable, "-m", "torch_xla.debug.report", "-o", str(path), str(script), "--size", "3"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 3 and done.stdout == "6.0\n", done.stderr
    assert f"report: {path}" in done.stderr
    data = embedded(path)
    assert data["title"] == "train.py"
    assert ".item(), at <module>@train.py:3" in [program["cause"] for program in data["programs"]]


def test_the_report_module_is_the_function_too(run_python, tmp_path):
    program = f"""
import torch_xla.debug
import torch_xla.debug.report
torch_xla.debug.report({str(tmp_path / "report.html")!r})
print("written")
"""
    assert run_python(program) == "written"


# What a browser does: opens groups of the graph, moves on the time line, sorts. Results go into an attribute.
PROBE = """
<script>
window.onerror = message => { document.body.setAttribute("data-error", message); };
const result = {};
const boxes = () => document.querySelectorAll("#graph .block");
result.rows = document.querySelectorAll("#programs tbody tr").length;
result.bars = document.querySelectorAll("#memory .stack").length;
result.canvases = document.querySelectorAll("canvas").length;
result.lines = document.querySelectorAll("#lines tbody tr").length;
result.boxes = boxes().length;
for (let i = 0; i < 6; i++) {
  const closed = [...boxes()].filter(box => /operators/.test(box.textContent));
  if (!closed.length) break;
  closed[closed.length >> 1].dispatchEvent(new MouseEvent("click", {bubbles: true}));
}
result.opened = boxes().length;
const single = [...boxes()].find(box => !/operators/.test(box.textContent));
single?.dispatchEvent(new MouseEvent("click", {bubbles: true}));
result.detail = document.getElementById("detail").textContent;
document.querySelector("[data-group=line]").click();
result.byLine = boxes().length;
document.querySelector("[data-sort=bytes]").click();
const zoom = new WheelEvent("wheel", {deltaY: -100, bubbles: true, cancelable: true});
document.querySelector("#timeline canvas")?.dispatchEvent(zoom);
document.getElementById("steady").click();
document.getElementById("whole").click();
for (const row of document.querySelectorAll("#programs tr.pick")) row.click();
document.body.setAttribute("data-result", JSON.stringify(result));
</script>
</body>"""


def browse(path: Path, screenshot: Path) -> dict:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
    if browser is None:
        pytest.skip("no browser found (Debian and Ubuntu: apt-get install chromium)")
    probe = path.with_name("probe.html")
    probe.write_text(path.read_text(encoding="utf-8").replace("</body>", PROBE), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,2600", "--virtual-time-budget=3000"]
    options += [f"--user-data-dir={path.parent / 'profile'}", "--proxy-server=127.0.0.1:9"]
    dump = subprocess.run(
        [browser, *options, "--dump-dom", probe.as_uri()], capture_output=True, text=True, timeout=180
    ).stdout
    subprocess.run(
        [browser, *options, f"--screenshot={screenshot}", path.as_uri()], capture_output=True, timeout=180, check=True
    )
    # Attributes of the element, not the probe's own text.
    (body,) = re.findall(r"<body[^>]*>", dump)
    assert "data-error" not in body, body
    (result,) = re.findall(r'data-result="([^"]*)"', body)
    return json.loads(result.replace("&quot;", '"').replace("&amp;", "&"))


@pytest.mark.slow
def test_report_in_a_browser(training_report, tmp_path):
    result = browse(training_report, tmp_path / "report.png")
    assert result["rows"] == len(embedded(training_report)["programs"]) and result["bars"] >= 1
    assert result["canvases"] == 2 and result["lines"] >= 1
    assert result["opened"] >= result["boxes"] >= 2 and result["byLine"] >= 2
    assert "aten::" in result["detail"] or "xla::" in result["detail"]
    assert (tmp_path / "report.png").stat().st_size > 20_000


@pytest.mark.slow
def test_report_stays_usable_at_5000_operators(recording, tmp_path):
    x = torch.ones(8, device=DEVICE)
    torch_xla.sync()
    y = x
    for i in range(1700):
        y = torch.tanh(y) + x
        if i % 4 == 0:
            y = y * 0.5
        y = torch.cos(y)
    # Written from the structure alone: whether XLA compiles such a chain quickly is not the question.
    graph = make_graph_of(y)
    data = _page.collect("many operators")
    data["programs"].append({**template_program(len(data["programs"])), "nodes": len(graph["nodes"]), "graph": graph})
    assert len(graph["nodes"]) >= 5000
    path = tmp_path / "report.html"
    _page.write_data(path, data)
    result = browse(path, tmp_path / "report.png")
    assert result["boxes"] < 400 and result["opened"] < 800


def make_graph_of(tensor: torch.Tensor) -> dict:
    """The page's form of the graph that a text dump shows."""
    graph = {"nodes": [], "parameters": [], "donated": [], "ops": [], "types": ["f32[8]{0}"], "lines": []}
    places: dict[str, int] = {}
    for line in debug.tensors_text([tensor]).splitlines()[1:-1]:
        name, op, operands = re.match(r"\s+(%\d+) = \S+ (\S+?)\((.*?)\)", line).groups()
        where = re.search(r"location=([^,\s]+)", line)
        if op == "xla::device_data":
            graph["parameters"].append("f32[8]")
            graph["donated"].append(0)
            places[name] = -len(graph["parameters"])
            continue
        places[name] = len(graph["nodes"])
        node = [0, 0, 0, 32, 0, 0, [places[operand] for operand in operands.split(", ") if operand]]
        for index, (table, text) in enumerate(
            (("ops", op), ("types", "f32[8]{0}"), ("lines", where.group(1) if where else ""))
        ):
            if text not in graph[table]:
                graph[table].append(text)
            node[index] = graph[table].index(text)
        graph["nodes"].append(node)
    return graph


def template_program(number: int) -> dict:
    sizes = ("argument_bytes", "output_bytes", "temp_bytes", "alias_bytes")
    return {
        "id": number,
        "cause": "sync",
        "why": "made by a test",
        "compile_s": 1.0,
        "runs": 1,
        "parameters": 1,
        "outputs": 1,
        **dict.fromkeys(sizes, 1000),
    }
