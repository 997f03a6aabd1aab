"""Examples that a scenario names: built-in datasets, .npz files and folders of images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cafe.errors import FileError
from cafe.scenario import load_scenario
from tests.support.image_files import write_images
from tests.support.scenarios import LEARNER, LEDGER, TASK, loaded, refused
from tests.support.torch_scenarios import write_data

OWN = TASK.replace('dataset = "digits"', 'file = "data.npz"')
IMAGES = TASK.replace('dataset = "digits"', 'folder = "images"')


def test_a_file_beside_the_scenario(tmp_path: Path) -> None:
    write_data(tmp_path / "data.npz")
    task = loaded(tmp_path, LEDGER + OWN + LEARNER).task(0)
    assert task is not None
    assert task.data.x.shape == (120, 3, 2, 2)
    assert task.test is not None
    assert len(task.test) == 40


def test_a_folder_of_images(tmp_path: Path) -> None:
    write_images(tmp_path / "images", cat=30, dog=30)
    task = loaded(tmp_path, LEDGER + IMAGES + LEARNER).task(0)
    assert task is not None
    assert (task.data.x.shape[1:], task.data.classes) == ((3, 3, 4), 2)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (OWN, "task.file: {}: the file cannot be read: there is no such file or folder"),
        (OWN.replace("data.npz", "."), "task.file: {}: the file cannot be read: it is a folder"),
        (IMAGES, "task.folder: {}: a folder with images was expected"),
    ],
)
def test_data_that_are_missing_when_settings_are_described(
    task: str, said: str, tmp_path: Path
) -> None:
    scenario = loaded(tmp_path, LEDGER + task + LEARNER)
    with pytest.raises(FileError) as raised:
        scenario.settings("mcu")
    assert said.partition("{}")[0] in f"{raised.value}"
    assert said.partition("{}")[2] in f"{raised.value}"


def test_the_paper_split_of_own_data(tmp_path: Path) -> None:
    text = LEDGER + OWN + 'split = "paper"\n' + LEARNER
    write_data(tmp_path / "data.npz")
    task = loaded(tmp_path, text).task(0)
    assert task is not None
    assert (len(task.data), len(task.test or ())) == (100, 20)
    # Without a test set of its own, the file gives the same sixth, and it is taken only once.
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "data.npz", x_train=rng.random((120, 2)), y_train=np.arange(120) % 4)
    again = loaded(tmp_path, text).task(0)
    assert again is not None
    assert (len(again.data), len(again.test or ())) == (100, 20)


def test_clients_of_the_data(tmp_path: Path) -> None:
    own = OWN.replace('"iid"', '"own"')
    write_data(tmp_path / "data.npz", client_train=np.arange(120) // 5)  # 24 clients
    tasks = [loaded(tmp_path, LEDGER + own + LEARNER).task(seed) for seed in (0, 0, 1)]
    shards = [task.shards for task in tasks if task is not None]
    assert np.array_equal(shards[0].rows, shards[1].rows)
    assert not np.array_equal(shards[0].rows, shards[2].rows)
    assert all(len({*(shards[0][client] // 5)}) == 1 for client in range(20))
    write_data(tmp_path / "data.npz", client_train=np.arange(120) // 12)
    said = "task.partition: The data must have at least as many clients as the federation, 20"
    assert refused(tmp_path, LEDGER + own + LEARNER).startswith(said)
    write_data(tmp_path / "data.npz")
    said = "task.partition: The partition 'own' needs data that name the client of each example"
    assert refused(tmp_path, LEDGER + own + LEARNER).startswith(said)


@pytest.mark.parametrize(("task", "key"), [(OWN, "file"), (IMAGES, "folder")])
def test_the_content_is_part_of_the_settings(task: str, key: str, tmp_path: Path) -> None:
    sums = []
    for seed in (0, 1):
        write_data(tmp_path / "data.npz", seed)
        write_images(tmp_path / "images", cat=3 + seed)
        settings = loaded(tmp_path, LEDGER + task + LEARNER).settings("mcu")
        assert settings["files"] == {}
        sums.append(settings["task"]["sha256"][key])
    assert sums[0] != sums[1]


def test_datasets_by_name_have_no_sum(tmp_path: Path) -> None:
    assert "sha256" not in loaded(tmp_path, LEDGER + TASK + LEARNER).settings("mcu")["task"]


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (
            TASK + 'file = "a.npz"\n',
            "[task] must have one of dataset, file and folder. Got dataset",
        ),
        ('[task]\npartition = "iid"\n', "task.dataset is missing"),
        (OWN.replace("data.npz", "none.npz"), "task.file: {folder}/none.npz: the file cannot be"),
        (IMAGES, "task.folder: {folder}/images: a folder with images was expected"),
        (OWN.replace('"data.npz"', "3"), "task.file must be text in quotes. Got 3"),
        (OWN.replace("file", "fle"), "the key task.fle is not known. Did you mean 'file'?"),
    ],
)
def test_wrong_tables(task: str, said: str, tmp_path: Path) -> None:
    assert refused(tmp_path, LEDGER + task + LEARNER).startswith(said.format(folder=tmp_path))


def test_paths_are_relative_to_the_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    write_data(tmp_path / "inner" / "data.npz")
    (tmp_path / "inner" / "a.toml").write_text(LEDGER + OWN + LEARNER)
    monkeypatch.chdir(tmp_path)
    assert load_scenario("inner/a.toml").task(0) is not None
