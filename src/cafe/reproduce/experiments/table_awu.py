"""Table I: MCU against AWU as the number of fast clients with hardly any data grows."""

from __future__ import annotations

from cafe.analysis.statistics import mean
from cafe.reproduce.claims import Claim, is_positive, judge, judge_differences
from cafe.reproduce.findings import Experiment, Finding
from cafe.reproduce.measured_tables import with_error
from cafe.reproduce.paired import PairedComparison
from cafe.reproduce.paper_tables import TABLE_AWU
from cafe.reproduce.parameter_search import awu_changes
from cafe.reproduce.rows import Row, Rows
from cafe.reproduce.trials import Effort, TrialProgress, grid, repeat_trials, run_trials

NAME, SEEDS = "table-awu", 5
SHARES = (0.05, 0.1, 0.15, 0.2, 0.3)
SCHEMES = ("mcu", "awu")
MANY = 0.15  # from this share on, AWU is more accurate in the paper
GUESSING = 0.2  # accuracy below which a model has learned next to nothing
KEPT, KEPT_IN_PART = 0.2, 0.5  # AWU's loss may be at most this part of MCU's


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Run both schemes at every share, on the same seeds."""
    points = grid(share=effort.thin(SHARES), policy=SCHEMES)
    trials = repeat_trials(NAME, points, SEEDS, lambda at: awu_changes(at["share"]), effort)
    return run_trials(trials, effort, progress)


def conclude(rows: Rows) -> Finding:
    """Compare AWU with MCU where many clients are biased and where few are."""
    both = PairedComparison(rows, TABLE_AWU, "share", SCHEMES, "{:.0%}".format)
    few = [share for share in both.points if share < MANY]
    many = [share for share in both.points if share >= MANY]
    mcu, awu = (mean(both.losses(scheme)) for scheme in SCHEMES)
    last = both.points[-1]
    return Finding(
        [
            Claim(
                "With many biased clients (15 % and more) AWU is more accurate than MCU",
                judge_differences([both.lead(share, "awu", "mcu") for share in many]),
                both.list_leads(many),
            ),
            Claim(
                "With few biased clients (5 and 10 %) MCU is better than AWU",
                judge_differences([both.lead(share, "mcu", "awu") for share in few]),
                both.list_leads(few),
            ),
            Claim(
                "MCU loses accuracy as the number of biased clients grows, and AWU keeps its "
                "accuracy",
                judge(
                    is_positive(mcu) and awu.mean <= KEPT * mcu.mean,
                    is_positive(mcu) and awu.mean <= KEPT_IN_PART * mcu.mean,
                ),
                f"From {both.points[0]:.0%} to {last:.0%} biased clients MCU loses "
                f"{with_error(mcu)} and AWU {with_error(awu)}.",
            ),
            Claim(
                "MCU only guesses (accuracy 0.1) at 30 % biased clients",
                judge(both.accuracy(last, "mcu").mean < GUESSING),
                f"MCU has {with_error(both.accuracy(last, 'mcu'))} there; the paper prints "
                f"{both.printed_accuracy(last, 'mcu'):g}.",
            ),
            both.claim_as_printed(),
        ],
        [both.table()],
        {"accuracy": lambda: both.draw("share of biased clients")},
        notes=[
            "The paper does not state learning rate, batch, widths, local work, samples per client "
            "or how many points a biased client holds. The setting is the one that the search "
            "found nearest to the printed table.",
            "Hollow marks are the paper's values. Differences are between runs of the same seed, "
            "in which the same clients report.",
            "`awu-phase` shows where else AWU is ahead, and where it is not.",
        ],
    )


EXPERIMENT = Experiment(
    NAME,
    "Table I, Sec. 8.3",
    "MCU and AWU as the number of fast clients with little data grows",
    run,
    conclude,
    TABLE_AWU,
)
