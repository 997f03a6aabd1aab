"""The client: it trains and evaluates on its own examples."""

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from stock import task

app = ClientApp()


@app.train()
def train(msg: Message, context: Context):
    """Train the received model, and reply with the result."""
    model = msg.content["arrays"].to_numpy_ndarrays()
    inputs, labels = task.load_data(context.run_config["data"], context.node_config["partition-id"])
    epochs = context.run_config["local-epochs"]
    model, loss = task.train(model, inputs, labels, epochs, msg.content["config"]["lr"])
    metrics = MetricRecord({"train_loss": loss, "num-examples": len(labels)})
    content = RecordDict({"arrays": ArrayRecord(model), "metrics": metrics})
    return Message(content=content, reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context):
    """Evaluate the received model, and reply with the metrics."""
    model = msg.content["arrays"].to_numpy_ndarrays()
    inputs, labels = task.load_data(context.run_config["data"], context.node_config["partition-id"])
    loss, accuracy = task.evaluate(model, inputs, labels)
    values = {"eval_loss": loss, "eval_acc": accuracy, "num-examples": len(labels)}
    return Message(content=RecordDict({"metrics": MetricRecord(values)}), reply_to=msg)
