"""A run on real clients, whatever carries the messages: the engine's books in real time.

::

    layout       a model of named arrays as one vector
    wire         what goes between server and clients
    work         the client's side of a job
    admission    which reports are let in
    robust       how updates are put together
    records      every job one by one, with its fate
    opened       a round while it is open
    pending      jobs whose fate is not known yet
    clients       who the clients are
    global_model      the global model, and how it moves on
    desk         orders out, replies in
    run          the loop
    state        a run as arrays and back
    journal      a run on disk as it goes
    status        how a run stands, for whoever watches
    scoring      how good the model is, within a time limit
    config        what a server is told to do
    serving      a whole run: waiting for clients, rounds, evaluation, checkpoints
    replay       the model again, from the log
"""

from cafe.live.aggregation import Clip, Median, Sum, Trimmed
from cafe.live.client_work import ClientContext, Job, TooLateError, Trained, work
from cafe.live.live_run import LiveRun
from cafe.live.validation import ReportLimits
from cafe.live.wire import Order, Reply, Report, Wire

__all__ = [
    "ClientContext",
    "Clip",
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
