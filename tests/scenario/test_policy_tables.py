"""The tables [policy] and [policies.LABEL]."""

from __future__ import annotations

from pathlib import Path

import pytest

from cafe.errors import FileError, InputError
from cafe.policies import agu, awu, mcu
from tests.support.scenarios import (
    FEDERATION,
    LEDGER,
    RUN,
    loaded,
    refused,
)


def test_policies_without_a_table_inherit_known_parameters(tmp_path: Path) -> None:
    text = LEDGER.replace("quorum = 3", 'quorum = 3\nlate = "keep"')
    scenario = loaded(tmp_path, text)
    assert scenario.policy("agu") == agu(quorum=3, deadline=0.5)
    assert scenario.policy("awu") == awu(quorum=3, deadline=0.5, late="keep")
    assert scenario.label == "mcu"


def test_policy_with_a_table_inherits_nothing(tmp_path: Path) -> None:
    text = LEDGER + (
        '[policies.awu]\ndeadline = 2.0\n[policies.long]\nname = "mcu"\nquorum = 1\ndeadline = 9\n'
    )
    scenario = loaded(tmp_path, text)
    assert list(scenario.policies) == ["mcu", "awu", "long"]
    assert scenario.policy("awu") == awu(deadline=2.0)
    assert scenario.policy("long") == mcu(quorum=1, deadline=9.0)
    assert scenario.settings("long")["policy"] == {"name": "mcu", "quorum": 1, "deadline": 9.0}


def test_an_unknown_policy_is_refused(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, LEDGER + "[policies.awu]\ndeadline = 2.0\n")
    with pytest.raises(InputError, match=r"There is no policy 'awuu'. Did you mean 'awu'\?"):
        scenario.policy("awuu")


POLICIES = {
    'name = "mc"': "policy.name must be a known name. Got 'mc'. Did you mean 'mcu'?",
    "name = 3": 'policy.name must be text in quotes. Got 3: write name = "mcu".',
    "quorum = 3": "policy.name is missing. Known: ",
    'nme = "mcu"\nquorum = 3': "the key policy.nme is not known. Did you mean 'name'?",
    'kind = "mcu"\nquorum = 3': "the key policy.kind is not known. Did you mean 'name'?",
    'name = "mcu"\nquorm = 3': "the key policy.quorm is not known. Did you mean 'quorum'?",
    'name = "mcu"\nquorum = 3': "policy.deadline is missing: add a number, such as deadline = 1.0",
    'name = "mcu"\nquorum = 2.5\ndeadline = 1': "policy.quorum must be a whole number. Got 2.5",
    'name = "mcu"\nquorum = "3"\ndeadline = 1': "policy.quorum must be a whole number. Got the tex",
    'name = "mcu"\nquorum = 3\ndeadline = true': "policy.deadline must be a number. Got true",
    'name = "mcu"\nquorum = 3\ndeadline = -1': "policy: The deadline must be a positive number",
    'name = "mcu"\nquorum = 3\ndeadline = inf': "policy: The deadline must be finite. Got inf",
    'name = "mcu"\nquorum = 21\ndeadline = 1': "policy: The quorum must be at most the number of",
    'name = "mcu"\nquorum = 3\ndeadline = 1\nlate = "kep"': (
        "policy.late must be a known name. Got 'kep'. Did you mean 'keep'?"
    ),
    'name = "mcu"\nquorum = 3\ndeadline = 1\nlate = 1': 'policy.late must be "drop" or "keep"',
    'name = "mcu"\nquorum = 3\ndeadline = 1\nclose_when_all = 1': "policy.close_when_all must",
    'name = "awu"\ndeadline = 1\nweight = "lin"': "policy: weight must be a name or a",
    'name = "awu"\ndeadline = 1\nweight = 3': "policy.weight must be text in quotes. Got 3",
    'name = "agu"\nquorum = 3\ndeadline = 1\nlate = "drop"': "the key policy.late is not known",
    'name = "mcu"\nquorum = 3\ndeadline = 1\n[policies]\nawu = 3': (
        "policies.awu must be a table. Got 3: write [policies.awu] and the lines"
    ),
    'name = "mcu"\nquorum = 3\ndeadline = 1\n[policies.awuu]\ndeadline = 1': (
        "policies.awuu.name must be a known name. Got 'awuu'. Did you mean 'awu'?"
    ),
    'name = "mcu"\nquorum = 3\ndeadline = 1\n[policies.long]\nnme = "mcu"': (
        "the key policies.long.nme is not known. Did you mean 'name'?"
    ),
    'name = "mcu"\nquorum = 3\ndeadline = 1\n[policies.mcu]\nquorum = 1\ndeadline = 1': (
        "policies.mcu is also the label of [policy]: choose another"
    ),
    'name = "mcu"\nquorum = 3\ndeadline = 1\n[policies."../x"]\nname = "mcu"': (
        "a label must consist of letters, digits, dots, hyphens and underscores. Got '../x'"
    ),
}


def test_policy_is_checked_with_the_crash_probability(tmp_path: Path) -> None:
    text = FEDERATION + '[policy]\nname = "fedavg"\n' + RUN
    assert loaded(tmp_path, text).label == "fedavg"
    assert refused(tmp_path, text + "crash = 0.1").startswith("policy: Without a deadline")
    with pytest.raises(FileError, match=r"policies\.fedavg: Without a deadline"):
        loaded(tmp_path, LEDGER.replace("[run]", "[policies.fedavg]\n[run]\ncrash = 0.1"))


def test_a_policy_that_lacks_a_parameter_asks_for_a_table(tmp_path: Path) -> None:
    text = LEDGER.replace('name = "mcu"\nquorum = 3', 'name = "awu"')
    said = (
        r"policies.mcu.quorum is missing.* There is no table \[policies.mcu\], so mcu takes "
        r"from \[policy\] the parameters that it knows \(deadline\): add that table"
    )
    with pytest.raises(FileError, match=said):
        loaded(tmp_path, text).policy("mcu")


def test_error_of_an_inherited_parameter_names_its_table(tmp_path: Path) -> None:
    said = (
        r"policies.fedavg: The quorum must be at most .* \(2\). Got 3: it could never be met. "
        r"There is no table \[policies.fedavg\], so fedavg takes from \[policy\] the parameters "
        r"that it knows \(quorum, deadline\): add that table, with its own values\.$"
    )
    with pytest.raises(FileError, match=said):
        loaded(tmp_path, LEDGER).policy("fedavg")
    own = "[policies.fedavg]\nquorum = 3\n"
    assert refused(tmp_path, LEDGER + own).endswith("it could never be met.")


CASES = [(FEDERATION + RUN + "[policy]\n" + lines, said) for lines, said in POLICIES.items()]


@pytest.mark.parametrize(("text", "said"), CASES, ids=[said for _, said in CASES])
def test_unusable_policies_are_refused(tmp_path: Path, text: str, said: str) -> None:
    assert refused(tmp_path, text).startswith(said)
