"""The client: it trains and evaluates on its own images."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from stock import task

app = ClientApp()


def _received(msg, context):
    """The received network, and the client's images and labels."""
    net = task.Net()
    net.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    here = context.node_config
    return net, *task.load_data(here["partition-id"], here["num-partitions"])


@app.train()
def train(msg: Message, context: Context):
    """Train the received network, and reply with the result."""
    net, images, labels = _received(msg, context)
    epochs = context.run_config["local-epochs"]
    loss = task.train(net, images, labels, epochs, msg.content["config"]["lr"])
    metrics = MetricRecord({"train_loss": loss, "num-examples": len(labels)})
    content = RecordDict({"arrays": ArrayRecord(net.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context):
    """Evaluate the received network, and reply with the metrics."""
    net, images, labels = _received(msg, context)
    loss, accuracy = task.evaluate(net, images, labels)
    values = {"eval_loss": loss, "eval_acc": accuracy, "num-examples": len(labels)}
    return Message(content=RecordDict({"metrics": MetricRecord(values)}), reply_to=msg)
