"""A run on real clients: the engine's books in real time, over any connection to the clients.

::

    wire               the messages between server and clients, and the interface that carries them
    client_work        the client's side of a job
    model_layout       a model of named arrays as one vector
    validation         which reports are accepted
    aggregation        how updates are combined, and how the global model moves
    job_records        the jobs of the open round, and the fate of every job
    dispatch           the clients' names; sends orders and receives replies
    stay_estimate      how likely clients are to stay, estimated from who was present
    live_run           one round after another
    evaluation         evaluation of the model within a time limit
    snapshot           a run as arrays and back: its checkpoint
    order_log          the orders since the last checkpoint, written before they are sent
    interrupted_round  the round in which an earlier server was killed
    run_log            the files of a run
    free_space         whether the disk has room for another round
    status_file        live.json, the present state of a run
    prometheus         this state as metrics for Prometheus
    status_server      both over HTTP, for monitoring
    server_config      the settings of a server
    server             a whole run: waiting for clients, rounds, evaluation, checkpoints
    replay             the model computed again from the log
"""

from cafe.live.aggregation import Clip, GlobalModel, Median, Sum, Trimmed
from cafe.live.client_work import ClientContext, Job, TooLateError, Trained, work
from cafe.live.live_run import LiveRun
from cafe.live.validation import ReportLimits
from cafe.live.wire import Order, Reply, Report, Wire

__all__ = [
    "ClientContext",
    "Clip",
    "GlobalModel",
    "Job",
    "LiveRun",
    "Median",
    "Order",
    "Reply",
    "Report",
    "ReportLimits",
    "Sum",
    "TooLateError",
    "Trained",
    "Trimmed",
    "Wire",
    "work",
]
