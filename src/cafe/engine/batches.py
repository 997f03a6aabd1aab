"""The batches of each job, which depend only on the seed, the invitation and the client."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cafe.data.examples import Rows
from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.learn.local_steps import LocalSteps
from cafe.randomness import Words, integers_below, mix, stream_key
from cafe.rounds.jobs import Whole, Work
from cafe.task import Task

# Row and weight of each example in each step, and the rate of each step.
Picked = tuple[Rows, Floats, Floats]


@dataclass(frozen=True, eq=False)
class Batches:
    """The batches of a task under a seed."""

    task: Task
    seed: int

    def local_steps(
        self, clients: Indices, invitations: Whole, rates: Floats, steps: Whole, work: Work
    ) -> LocalSteps:
        """The local steps of clients, over all jobs of each client.

        Args:
            clients: one per row of the arrays below.
            invitations: the number of the invitation that started each job, in an array of shape
                (clients, jobs); -1 where a client has fewer jobs.
            rates: the learning rate of each job, same shape; 0 where a client has fewer jobs.
            steps: how many steps each job takes, same shape.
            work: what each job does.
        """
        words = mix(mix(self._key, invitations), clients[:, None])
        pick = self._steps if work.epochs is None else self._epochs
        if invitations.shape[1] > 1:  # some clients may have fewer jobs than others
            steps = np.where(invitations >= 0, steps, 0)
        rows, weight, rate = pick(clients, words, rates, steps)
        if work.scaled:
            weight = weight * self.task.scale[clients][:, None, None]
        shared = np.broadcast_to(weight.astype(np.float32), rows.shape)
        prox = np.full(rate.shape, work.prox, dtype=np.float32) if work.prox else None
        return LocalSteps(rows, shared, rate.astype(np.float32), prox)

    @cached_property
    def _key(self) -> np.uint64:
        return stream_key(self.seed, "batches")

    def _steps(self, clients: Indices, words: Words, rates: Floats, steps: Whole) -> Picked:
        """Independent batches with replacement: the gradient's variance is exactly sigma^2 / batch.

        A client with no more examples than a batch uses all of them in each step. A client that
        takes fewer steps than others has padding after its last step, with rate 0.
        """
        held, most = self.task.shards.counts[clients], int(steps.max(initial=1))
        batch = int(held.max()) if self.task.batch is None else min(self.task.batch, held.max())
        shape = (len(clients), rates.shape[1] * most, batch)
        place = np.arange(most * batch)
        whole = held <= batch if self.task.batch is not None else held > 0
        if whole.all():
            index = np.broadcast_to(np.arange(batch), shape)
        else:
            index = integers_below(mix(words[..., None], place), held[:, None, None]).reshape(shape)
            if whole.any():
                index = np.where(whole[:, None, None], np.arange(batch), index)
        weight = np.full((1, 1, 1), 1.0 / batch)
        if whole.any():
            own = np.arange(batch) < held[:, None]
            weight = np.where(whole[:, None], own / held[:, None], weight[0])[:, None]
            index = np.minimum(index, held[:, None, None] - 1)
        rate = rates
        if most > 1:
            taken = np.arange(most) < steps[..., None]
            rate = (rates[..., None] * taken).reshape(len(clients), -1)
        first = self.task.shards.starts[clients]
        return self.task.shards.rows[first[:, None, None] + index], weight, rate

    def _epochs(self, clients: Indices, words: Words, rates: Floats, steps: Whole) -> Picked:
        """Passes over all examples of a client, each in a new order; the last batch may be smaller.

        The last pass ends after the job's last step.
        """
        held = self.task.shards.counts[clients]
        batch = int(min(self.task.batch or held.max(), held.max()))
        longest = int(steps.sum(axis=1).max())
        rows = np.empty((len(clients), longest, batch), dtype=np.intp)
        weight = np.zeros(rows.shape)
        rate = np.zeros(rows.shape[:2])
        for k, client in enumerate(clients):
            mine = self.task.shards[int(client)]
            rows[k] = mine[0]  # padding: the client's first row, with weight 0
            at = 0
            for job in np.flatnonzero(steps[k]):
                end = at + steps[k, job]
                rate[k, at:end] = rates[k, job]
                epoch = 0
                while at < end:
                    order = np.argsort(mix(mix(words[k, job], epoch), np.arange(len(mine))))
                    for begin in range(0, min(len(mine), (end - at) * batch), batch):
                        some = mine[order[begin : begin + batch]]
                        rows[k, at, : len(some)] = some
                        weight[k, at, : len(some)] = 1.0 / len(some)
                        at += 1
                    epoch += 1
        return rows, weight, rate
