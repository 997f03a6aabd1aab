"""PyTorch modules that a scenario names: how they are found, called, identified and refused."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from cafe.errors import FileError
from cafe.scenario import Scenario, load_scenario
from tests.support.torch_scenarios import LEARNER, MODULE, SCENARIO, write_files

pytest.importorskip("torch")

from cafe.learn.torch import TorchLearner


def made(folder: Path, learner: str = LEARNER, module: str = MODULE) -> Scenario:
    folder.mkdir(exist_ok=True)
    return load_scenario(write_files(folder, module, SCENARIO.replace(LEARNER, learner)))


def refused(folder: Path, learner: str = LEARNER, module: str = MODULE) -> str:
    with pytest.raises(FileError) as raised:
        made(folder, learner, module).task(0)
    message = f"{raised.value}"
    assert message.startswith(f"{folder / 'torch.toml'}: ")
    assert message.endswith((".", "?"))
    return message


def learner_of(scenario: Scenario, threads: int | None = None) -> TorchLearner:
    task = scenario.task(0, threads)
    assert task is not None
    assert isinstance(task.learner, TorchLearner)
    return task.learner


def parameters(scenario: Scenario) -> int:
    return len(learner_of(scenario).start(np.random.default_rng(0)))


def test_the_module_is_found_beside_the_scenario(tmp_path: Path) -> None:
    scenario = made(tmp_path)
    assert parameters(scenario) == 13 * 3 + 4 * 4
    assert learner_of(scenario, threads=1).threads == 1


def test_arguments_and_options(tmp_path: Path) -> None:
    options = 'arguments = { width = 5 }\nl2 = 0.5\nshape = [12]\ndevice = "cpu"\n'
    scenario = made(tmp_path, LEARNER + options)
    assert parameters(scenario) == 13 * 5 + 6 * 4
    assert (learner_of(scenario).l2, learner_of(scenario).shape) == (0.5, (12,))


def test_a_function_and_a_loss(tmp_path: Path) -> None:
    more = (
        "\ndef small():\n    return Net(1)\n"
        "\ndef loss(output, y):\n    return (output[:, 0] - y).square()\n"
    )
    named = LEARNER.replace("nets:Net", "nets:small") + 'loss = "nets:loss"\n'
    assert parameters(made(tmp_path, named, MODULE + more)) == 13 + 2 * 4


def test_objects_that_can_be_called(tmp_path: Path) -> None:
    more = (
        "\nfrom functools import partial\nsmall = partial(Net, 1)\n"
        "\nloss = nn.CrossEntropyLoss(reduction='none')\n"
    )
    named = LEARNER.replace("nets:Net", "nets:small") + 'loss = "nets:loss"\n'
    scenario = made(tmp_path / "a", named, MODULE + more)
    assert parameters(scenario) == 13 + 2 * 4
    before = scenario.settings("mcu")["learner"]["sha256"]
    sys.modules.pop("nets", None)
    # In another folder: within a second, Python may use the bytecode of a file of the same size.
    changed = made(tmp_path / "b", named, MODULE + more.replace("Net, 1", "Net, 2"))
    assert changed.settings("mcu")["learner"]["sha256"]["module"] != before["module"]


def code(folder: Path, learner: str = LEARNER, module: str = MODULE) -> str:
    """The hash of the module's code, read as in a new process."""
    sys.modules.pop("nets", None)
    found = made(folder, learner, module).settings("mcu")["learner"]["sha256"]["module"]
    assert isinstance(found, str)
    return found


def test_the_code_of_the_module_is_part_of_the_settings(tmp_path: Path) -> None:
    first = code(tmp_path / "a")
    assert code(tmp_path / "b", module=f"# a comment\n{MODULE}") == first
    assert (
        code(tmp_path / "c", module=MODULE.replace("12, width", "12, width, bias=False")) != first
    )


def test_values_without_identity_count_with_the_whole_file(tmp_path: Path) -> None:
    uses = MODULE.replace("return self.layers(x)", "return self.layers(x) * SCALE")
    one, two = (f"import torch\nSCALE = torch.tensor({n}.0)\n{uses}" for n in (1, 2))
    assert code(tmp_path / "a", module=one) != code(tmp_path / "b", module=two)
    assert code(tmp_path / "c", module=one) == code(tmp_path / "d", module=one)


WRONG = {
    'name = "torch"\n': "learner.module is missing",
    LEARNER + "batch = 3\n": "the key learner.batch is not known",
    LEARNER + "arguments = 3\n": "learner.arguments must be a table",
    LEARNER + "arguments = { wide = 3 }\n": "learner.module: nets:Net must accept the arguments",
    LEARNER + "arguments = { width = 'a' }\n": "learner: nets:Net has failed: TypeError",
    LEARNER + "shape = [0]\n": "learner.shape must be whole numbers from 1 up",
    LEARNER + "shape = [7]\n": "shape must have as many values as a row of the examples, 12",
    LEARNER + 'device = "moon"\n': "device must be one that PyTorch can use",
    LEARNER + 'loss = "nets:none"\n': "learner.loss: nets has no function 'none'",
    LEARNER.replace("nets:Net", "nets"): "must be named as module:function",
    LEARNER.replace("nets:Net", "nets:Nat"): "nets has no function 'Nat'. Did you mean 'Net'?",
    LEARNER.replace("nets:Net", "nots:Net"): "There is no module 'nots'",
    LEARNER.replace("nets:Net", "nets:number"): "must be a function that returns a torch.nn.Module",
    LEARNER.replace("nets:Net", "nets:text"): "nets:text must return a torch.nn.Module. Got a str",
    LEARNER.replace("nets:Net", "nets:empty"): "with at least one parameter to train",
    LEARNER.replace("nets:Net", "nets:needs"): "missing a required argument: 'size'",
    LEARNER.replace("nets:Net", "nets:fails"): "nets:fails has failed: RuntimeError: no luck",
    LEARNER.replace("nets:Net", "nets:small"): "a value for each of the 4 classes",
    LEARNER.replace("nets:Net", "nets:other"): "They failed: RuntimeError: mat1 and mat2 shapes",
    LEARNER.replace("nets:Net", "nets:drops"): "(Dropout) draws random numbers",
    LEARNER.replace("nets:Net", "nets:made"): "nets:made must be a class of modules, or a function",
    LEARNER.replace("nets:Net", "nets:leaves"): "nets:leaves has failed: SystemExit: bye (nets.py,",
    LEARNER.replace("nets:Net", "nets:deep"): "(nets.py, line",
}
MORE = """
number = 3

def text():
    return "a net"

def empty():
    return nn.ReLU()

def needs(size):
    return nn.Linear(size, 2)

def fails():
    raise RuntimeError("no luck")

def small():
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 3))

def other():
    return nn.Sequential(nn.Flatten(), nn.Linear(5, 4))

made = nn.Linear(12, 4)

def leaves():
    raise SystemExit("bye")

def deep():
    return nn.Linear("a", "b")

def drops():
    return nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(12, 4))
"""


@pytest.mark.parametrize("learner", WRONG)
def test_wrong_tables(learner: str, tmp_path: Path) -> None:
    table = learner if "[learner]" in learner else f"[learner]\n{learner}"
    assert WRONG[learner] in refused(tmp_path, table, MODULE + MORE)


def test_a_module_with_a_mistake(tmp_path: Path) -> None:
    assert "cannot be imported: SyntaxError" in refused(tmp_path, module="class Net(:")


def test_without_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "cafe.learn.torch")
    assert "needs PyTorch, which is not installed: pip install torch" in refused(tmp_path)
