"""Table I: MCU against AWU as the number of fast clients with hardly any data grows.

Rows without a ``round`` are runs, the others evaluations.
"""

from __future__ import annotations

from cafe.analysis.statistics import mean
from cafe.report.cells import Cells
from cafe.reproduce.claims import Claim, is_positive, judge, judge_differences
from cafe.reproduce.experiments import plateau
from cafe.reproduce.experiments.prediction_counts import run_counting
from cafe.reproduce.findings import Experiment, Finding
from cafe.reproduce.measured_tables import table, with_error
from cafe.reproduce.paired import PairedComparison
from cafe.reproduce.paper_tables import TABLE_AWU
from cafe.reproduce.parameter_search import awu_changes
from cafe.reproduce.rows import Row, Rows, column, group, levels
from cafe.reproduce.table_awu_search import distance
from cafe.reproduce.trials import Effort, TrialProgress, grid, repeat_trials, run_each

NAME, SEEDS = "table-awu", 10
SHARES = (0.05, 0.1, 0.15, 0.2, 0.3)
SCHEMES = ("mcu", "awu")
MANY = 0.15  # from this share on, AWU is more accurate in the paper
GUESSING = 0.2  # accuracy below which a model has learned next to nothing
KEPT, KEPT_IN_PART = 0.2, 0.5  # AWU's loss may be at most this part of MCU's


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Run both schemes at every share, on the same seeds; count predictions at evaluations."""
    points = grid(share=effort.thin(SHARES), policy=SCHEMES)
    trials = repeat_trials(NAME, points, SEEDS, lambda at: awu_changes(at["share"]), effort)
    return run_each(trials, effort, progress, run_counting)


def conclude(rows: Rows) -> Finding:
    """Compare AWU with MCU where many clients are biased and where few are."""
    runs = [row for row in rows if "round" not in row]
    plateaus = plateau.Plateaus([row for row in rows if "round" in row])
    both = PairedComparison(runs, TABLE_AWU, "share", SCHEMES, "{:.0%}".format)
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
            *plateau.claims(plateaus, MANY),
        ],
        [both.table(), _seeds_table(runs), plateau.lengths_table(plateaus)],
        {
            "accuracy": lambda: both.draw("share of biased clients"),
            "plateau": lambda: plateau.draw(plateaus),
        },
        notes=[
            "The paper does not state learning rate, batch, widths, local work, samples per client "
            "or how many points a biased client holds, nor how the network is initialised. The "
            "setting is the one that `search-awu` found nearest to the printed table.",
            "Hollow marks are the paper's values. Differences are between runs of the same seed, "
            "in which the same clients report.",
            "What the table shows is a plateau, and how far a run has come from it after 1000 "
            "rounds. With the small weights of PyTorch's default initialisation a network passes "
            "on hardly anything of its inputs at first. It learns how common the classes are, and "
            "predicts the commonest one for all examples; its accuracy is 0.1. Biased clients "
            "lengthen this plateau, because they make their class more common. Age weights make "
            "the classes more equal, and shorten it. With a larger rate all runs leave it early, "
            "and the schemes differ much less (`search-awu`, step 2).",
            "In the third table and in the picture the rounds are those after which the model was "
            "evaluated, every 50.",
            "`awu-phase` shows where else AWU is ahead, and where it is not.",
        ],
    )


def _seeds_table(runs: Rows) -> Cells:
    """Both columns of every seed alone, of the means and of the paper, and how far they are."""
    by_seed = group(sorted(runs, key=lambda row: row["seed"]), "seed")
    parts = {f"seed {seed}": own for (seed,), own in by_seed.items()}
    shares = ", ".join(f"{share:.0%}" for share in levels(runs, "share"))
    return table(
        "Single seeds, and their distance from the printed table (root mean square)",
        (
            {
                "runs": name,
                "distance": f"{distance(own):.3f}",
                **{
                    f"{policy.upper()} at {shares}": ", ".join(
                        f"{mean(column(own, 'accuracy', share=share, policy=policy)).mean:.3f}"
                        for share in levels(runs, "share")
                    )
                    for policy in SCHEMES
                },
            }
            for name, own in {**parts, "mean": runs, "printed": _printed(runs)}.items()
        ),
    )


def _printed(runs: Rows) -> list[Row]:
    shares = levels(runs, "share")
    return [{**row, "seed": 0} for row in TABLE_AWU if row["share"] in shares]


EXPERIMENT = Experiment(
    NAME,
    "Table I, Sec. 8.3",
    "MCU and AWU as the number of fast clients with little data grows",
    run,
    conclude,
    TABLE_AWU,
)
