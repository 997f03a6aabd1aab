"""A PyTorch ClientApp as Flower's quickstart writes it, with a BatchNorm layer."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")
pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg, Result

from cafe.flower import Strategy
from cafe.policies import fedavg
from tests.support.flower.stock_grid import StockGrid

pytestmark = [pytest.mark.usefixtures("identity"), pytest.mark.slow]

NODES, ROUNDS = 3, 2
app = ClientApp()


def net() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)
    )


@app.train()
def train(message: Message, context: Context) -> Message:
    """Node k takes 2 steps on 8 examples, and claims k examples."""
    model, k = net(), context.node_id
    model.load_state_dict(message.content.array_records["arrays"].to_torch_state_dict())
    inputs = torch.randn(8, 3, generator=torch.Generator().manual_seed(k))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimiser.zero_grad()
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimiser.step()
    metrics = MetricRecord({"train_loss": loss.item(), "num-examples": k})
    content = RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=message)


def test_result_equals_fedavg_and_loads_into_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = StockGrid(app, NODES).install(monkeypatch)
    first = ArrayRecord(net().state_dict())
    policy = fedavg(fraction=1.0, quorum=NODES, deadline=5.0)
    mine = Strategy(policy, folder=tmp_path, fraction_evaluate=0.0).start(grid, first, ROUNDS)
    stock = FedAvg(fraction_evaluate=0.0).start(grid, first, ROUNDS)
    ours, theirs = state(mine), state(stock)
    assert [*ours] == [*theirs] == [*net().state_dict()]
    # FedAvg's own counter is 3: its mean of 2, 2 and 2 is slightly less, and clients cut it to 1.
    counter, _ = ours["1.num_batches_tracked"], theirs.pop("1.num_batches_tracked")
    assert counter.item() == 2 * ROUNDS
    assert counter.dtype == torch.int64
    for name, tensor in theirs.items():
        torch.testing.assert_close(ours[name], tensor, rtol=1e-5, atol=1e-6)
    assert not torch.equal(ours["1.running_mean"], torch.zeros(4))
    net().load_state_dict(ours)
    assert mine.train_metrics_clientapp[ROUNDS]["train_loss"] == pytest.approx(
        stock.train_metrics_clientapp[ROUNDS]["train_loss"], rel=1e-5
    )


def state(result: Result) -> dict[str, torch.Tensor]:
    return dict(result.arrays.to_torch_state_dict())
