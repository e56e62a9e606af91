"""Every sentence about the future, a failure or an interval, each with what backs it.

Pure functions of plain numbers. Whoever speaks of a study (commands, notebooks, pages, JSON) takes
the sentence from here, so that a thing is said in one way. Which of them is said is decided where
its numbers are made. *Backed by* names the section of docs/benchmarks that measured the claim:
*coverage* is "How often intervals hold the truth", *voice* "What a study says, held to the truth",
*matters* "Which parameters matter", *crashes* "Where trials fail", *choices* "Unordered choices",
*limits* "Where a second number has a limit", *past* "What is said of the past, and of a policy that
was tried";
a sentence without it repeats what the file holds, and forecasts nothing.

Longer than others: it is the one place where all of them can be read side by side.
"""

from collections.abc import Mapping, Sequence
from math import ceil, floor, isfinite, log10

from recoup.study.space.choices import in_words
from recoup.study.space.goals import MAXIMIZE, Goal

TRUSTED = 0.7  # Pareto k-hat above which a mean of weights, and its error, cannot be trusted
LEAST_ESS = 5.0  # effective sample size below which nothing is said: `recoup.core.worth` has it too
LITTLE_VARIANCE = 0.1  # share of the returns' variance below which the model is not spoken of
TRIALS = 12  # that a sentence names
NAMED_PARAMETERS = 5  # that a sentence names
NO_EFFECT = 0.02  # share of what returns vary by, below which a parameter has none to speak of
IDLE = 0.05  # likewise, where its effect cannot be told from noise
PAIR = 0.1  # likewise, above which a pair is spoken of
ANY_SHARE = 12**-0.5  # standard deviation of a share that is anything from 0 to 1
MEAN_POLICY, DRAW = "the mean policy", "a draw of the newest distribution"  # what returns are of
CANDIDATE = "a draw of the candidate"
NOTHING_NEAR, FAILED_NEAR = "nothing near it was tried", "all that was tried near it failed"
WRITTEN = 1e7  # from here on numbers have a power of ten
BY_MODEL = {  # why weights do not judge a distribution, and what does
    "chosen": "{samples} results, by a model of the {nouns}: the same results chose this "
    "distribution, so that their weights would flatter it",
    "modelled": "{samples} results, by a model of the {nouns}: weights alone say too little about "
    "it",
    "nearest": "the {samples} results nearest to it: too few of all {nouns} differ for weights or "
    "a model",
}
SURELY = 0.001  # a chance nearer to 0 or to 1 than this is not said: models are not as sure


# -- the mean policy --


def deploy(times: int, failed: int, refused: str = "", more: int = 0) -> str:
    """Which parameters to take, and how many of the times that they were tried they failed.

    `refused` is why they are not to be taken, if so; `more` how many trials it takes yet to say
    whether they fail too often. Claims no more than that the search ends there. Backed by: *voice*,
    regret at "stop".
    """
    take = "The mean policy is the one to deploy."
    if not failed:
        return refused or take
    often = "the one time" if times == 1 else f"{failed} of the {times} times"
    often = f"failed {often} that it was tried"
    if more and not refused:
        again = "once more" if more == 1 else f"{more} more times"
        return f"The mean policy {often}: try it {again} before you rely on it."
    return f"{refused or take} It {often}."


def deployed_name(what: str, number: int | None) -> str:
    """What is called so that is deployed: the start, trial 12, the mean after move 3."""
    if what == "start":
        return "the start"
    named = {"trial": f"trial {number}", "earlier mean": f"the mean after move {number}"}
    return named.get(what, MEAN_POLICY)


def deploy_other(name: str, refused: str = "") -> str:
    """That something else than the newest mean is to be taken, and why.

    `refused` is why the mean policy is not to be taken, if so. Backed by: *voice*, "What to
    deploy".
    """
    if name == "the start":
        return refused or "Nothing is known to be better than the start yet."
    why = refused or "The mean policy is not known to be as good."
    return f"{name[:1].upper()}{name[1:]} is the one to deploy. {why}"


def expected_return(
    value: float,
    low: float,
    high: float,
    rests_on: str,
    goal: Goal = MAXIMIZE,
    of: str = MEAN_POLICY,
) -> str:
    """What a rollout earns on average, or that it is not known: one of the mean policy, or a draw.

    Claims that the interval holds that mean 95 times in a hundred. Backed by: *voice*, column
    "mean policy held", for the mean policy, and *past*, column "5 trials", where trials of it say
    so; *coverage* for a distribution.
    """
    about = f"The expected {goal.noun} of {of} is"
    if not isfinite(value):
        return f"{about} not known: {rests_on.rstrip('.')}."
    return f"{about} {with_ends(value, low, high)}, from {rests_on.rstrip('.')}."


def apart(*values: float) -> list[str]:
    """Numbers with four digits, or as many more as tell the least from the largest to two."""
    known = [value for value in values if isfinite(value)] or [0.0]
    width, largest = max(known) - min(known), max(map(abs, known))
    digits = 4 if width <= 0 or not isfinite(width) else ceil(log10(largest / width)) + 2
    return [written(value, min(max(digits, 4), 15)) for value in values]


def written(value: float, digits: int = 4) -> str:
    """A number with so many digits, as people write it: 10170, not 1.017e+04."""
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text and abs(value) < WRITTEN else text


def noted(notes: Mapping[str, float]) -> str:
    """What a mover of the user's has noted of its last move."""
    listed = ", ".join(f"{key} {written(value)}" for key, value in notes.items())
    return f"Noted by the last move: {listed}."


def with_ends(value: float, low: float, high: float) -> str:
    """An expected return with its 95 % interval, if it has one. Backed by: *coverage*."""
    said, least, most = apart(value, low, high)
    return said + (f" (95 %: {least} to {most})" if isfinite(low) else "")


def in_short(value: float, low: float, high: float) -> str:
    """An expected return with its interval, or that it or the interval is not known."""
    if not isfinite(value):
        return "unknown"
    return with_ends(value, low, high) + ("" if isfinite(low) else ", without an interval")


def failed_in_a_row(results: int) -> str:
    """That nothing is to be deployed while all that comes back fails."""
    return f"Do not deploy the mean policy: the last {results} results all failed."


def fails_too_often(rate: float, most: float) -> str:
    """That it is not to be deployed. Backed by: *crashes*, "Where trials fail"."""
    return (
        f"Do not deploy the mean policy: it fails in {rate:.0%} of rollouts, above the {most:.0%} "
        "up to which one is recommended."
    )


def fails(rate: float, low: float, high: float, rests_on: str) -> str:
    """How often the mean policy fails.

    Claims that the interval holds that chance 95 times in a hundred. Backed by: *crashes*.
    """
    if not isfinite(rate):
        return ""
    return f"It fails in {rate:.0%} of rollouts (95 %: {low:.0%} to {high:.0%}), from {rests_on}."


def percent(chance: float) -> str:
    """A chance in per cent with one digit, as far as a model may say it: none is sure."""
    if not SURELY < chance < 1 - SURELY:
        return f"less than {SURELY:.1%}" if chance <= SURELY else f"more than {1 - SURELY:.1%}"
    return f"{chance:.1%}".replace(".0%", "%")


def breaks_too_often(limit: str, chance: float, within: float) -> str:
    """That it is not to be deployed. Backed by: *limits*, "Where a second number has a limit"."""
    said = percent(chance)
    if said == percent(within):  # that it never reads as what was asked for
        said = percent(floor(1000 * chance) / 1000)
    return (
        f"Do not deploy the mean policy: a rollout of it keeps {limit} with a chance of "
        f"{said}, below the {percent(within)} that was asked for."
    )


def limit_not_known(limit: str, why: str) -> str:
    """That nothing is to be deployed while nothing says whether it keeps a limit."""
    return f"Do not deploy the mean policy yet: whether it keeps {limit} is not known: {why}."


def nothing_within(limits: Sequence[str], within: float) -> str:
    """That no candidate is known to keep the limits. Backed by: *limits*."""
    each = " each" if len(limits) > 1 else ""
    return (
        f"Nothing can be suggested: nothing is known to keep {' and '.join(limits)} with a chance "
        f"of {percent(within)}{each}."
    )


def within_limit(
    limit: str,
    chance: tuple[float, float, float],
    number: tuple[str, float, float, float],
    rests_on: str,
) -> str:
    """How surely a rollout is within a limit, and what its number is; empty where not known.

    Claims that the interval holds that chance 95 times in a hundred, and that 95 of a hundred
    rollouts have a number in between. Backed by: *limits*, columns "chance held" and "number held".
    """
    if not isfinite(chance[0]):
        return ""
    rate, low, high = map(percent, chance)
    ends = low if low == high else f"{low} to {high}"
    name, (value, least, most) = number[0], apart(*number[1:])
    return (
        f"A rollout of it keeps {limit} with a chance of {rate} (95 %: {ends}), from "
        f"{rests_on}: {name} is {value} (95 of 100 rollouts: {least} to {most})."
    )


def go_on_to_limits(limits: Sequence[str]) -> str:
    """That what is deployed is not within its limits surely enough yet: of now alone."""
    return f"Go on: the mean policy is not sure enough to keep {' and '.join(limits)} yet."


def go_on_failing(in_a_row: bool) -> str:
    """That what is deployed fails too often yet, or all that came back last did: of now alone."""
    if in_a_row:
        return "Go on until rollouts come back that did not fail."
    return "Go on: the mean policy fails too often."


def broke(trial: int, also: Mapping[str, float], limits: Sequence[str]) -> str:
    """That a result has broken limits, of what was told alone; empty where it has not."""
    if not limits:
        return ""
    numbers = ", ".join(f"{name} {value:.6g}" for name, value in also.items())
    return f"Trial {trial} broke {' and '.join(limits)} ({numbers})."


def limits_told(rows: Sequence[tuple[str, int, int]], within: float) -> str:
    """The limits of a study, and how many results broke each: of the past alone."""
    said = [f"{limit} (broken by {broken} of {told} results)" for limit, told, broken in rows]
    return f"{', '.join(said)}; each to be kept with a chance of {percent(within)}"


def left_out_of_that(failures: int) -> str:
    """That an expected return is one of rollouts that do not fail; empty where none did.

    Backed by: *coverage*, the rows of failures, whose truth is that mean.
    """
    if not failures:
        return ""
    return f"{failures} failed result{'s are' if failures > 1 else ' is'} left out of that."


def between(low: float, high: float) -> str:
    """Where a parameter is best while the others stay; open beyond what was tried.

    Claims that the interval holds the best value 95 times in a hundred. Backed by: *voice*,
    columns "best held" and "closed".
    """
    if isfinite(low) and isfinite(high):
        return " to ".join(apart(low, high))
    if isfinite(low):
        return f"{written(low)} or more"
    return f"{written(high)} or less" if isfinite(high) else "not known"


def best_at(where: Sequence[float] | Mapping[str, float]) -> str:
    """Between which numbers the best lies, or how surely each of several choices is the best.

    Claims that a choice which is said to be the best with so many per cent is so that often. Backed
    by: *choices*, column "said and right".
    """
    return in_words(where) if isinstance(where, Mapping) else between(*where)


def predicted(value: float, low: float, high: float, rests_on: str, goal: Goal = MAXIMIZE) -> str:
    """The expected return of one theta. Claims what `expected_return` does. Backed by: *voice*."""
    return f"The expected {goal.noun} is {with_ends(value, low, high)}, from {rests_on}."


def without_slips(
    results: int, value: float, low: float, high: float, goal: Goal = MAXIMIZE
) -> str:
    """What the expected return would be without results that stand out, on which it rests.

    Claims what `expected_return` does, of the others. Backed by: *voice*, column "mean policy
    held".
    """
    them = "it" if results == 1 else "them"
    return f"Without {them} the expected {goal.noun} would be {with_ends(value, low, high)}."


def others_stand_out(results: int) -> str:
    """That more results stand out than were named."""
    return f"{results} more stand{'s' if results == 1 else ''} out likewise."


def not_predicted(why: str) -> str:
    """That results say nothing of a theta, and why; where all failed, nobody is sent there."""
    more = "" if why == FAILED_NEAR else " A rollout or two of it would say."
    return f"What it is worth is not known: {why}.{more}"


def explains(share: float, stderr: float) -> str:
    """How much of what returns vary by something explains; not where it may be any share.

    Claims it to one standard error. Backed by: *matters*, column "within two errors".
    """
    if not stderr < ANY_SHARE:
        return "not known"
    return f"{share:.0%} ± {max(stderr, 0.01):.0%}"


def share_explained(goal: Goal = MAXIMIZE) -> str:
    """What `explains` is of, and by which model. Backed by: *matters*."""
    return (
        f"the share of what the {goal.nouns} vary by, over all that was tried and beside noise, by "
        "a model of all results"
    )


def what_matters(
    rows: Sequence[tuple[Sequence[str], float, float, bool]],
    known: Sequence[str] = (),
    goal: Goal = MAXIMIZE,
) -> str:
    """Which parameters do nothing that can be seen, and which pair matters together.

    Of parameters, and pairs of them, with their shares and errors, and whether their effect stands
    out from noise. Where one of which it is `known` where it is best explains little, others
    explain very much: it is not said to do nothing. Backed by: *matters*, columns "idle named" and
    "wrongly".
    """
    alone = [(x[0], share + 2 * error, out) for x, share, error, out in rows if len(x) == 1]
    seen = [name for name, _, stands_out in alone if stands_out or name in known]
    idle = [name for name, most, _ in alone if most < IDLE and name not in seen]
    small = [name for name, most, _ in alone if most < NO_EFFECT and name in seen]
    known_pairs = [row for row in rows if len(row[0]) == 2 and row[2] < ANY_SHARE]
    pairs = [row for row in known_pairs if row[1] > max(PAIR, 2 * row[2])]
    said = []
    if idle:
        does = "does" if len(idle) == 1 else "do"
        said.append(f"{_named(idle)} {does} nothing that can be seen.")
    if small:
        explain, each = ("explains", "") if len(small) == 1 else ("explain", " each")
        said.append(
            f"{_named(small)} {explain} less than {NO_EFFECT:.0%}{each} of what the {goal.nouns} "
            "vary by, over all that was tried."
        )
    for names, share, error, _ in pairs[:1]:
        said.append(
            f"{' and '.join(names)} together explain {explains(share, error)} of what the "
            f"{goal.nouns} vary by, over all that was tried and beside what each explains alone: "
            "tune them together."
        )
    return " ".join(said)


def _named(names: Sequence[str]) -> str:
    """Names in a row, of many the first."""
    more = f" and {len(names) - NAMED_PARAMETERS} more" if len(names) > NAMED_PARAMETERS else ""
    return f"{', '.join(names[:NAMED_PARAMETERS])}{more}"


def best_between(limits: Sequence[str] = (), goal: Goal = MAXIMIZE) -> str:
    """What `between` is of, beside limits. Backed by: *voice*, column "best held"."""
    aside = f", for the {goal.noun} alone: {' and '.join(limits)} left aside" if limits else ""
    return f"the 95 % interval of the best value of each, while the others stay{aside}"


def best_choice() -> str:
    """What the shares of choices are of. Backed by: *choices*, column "said and right"."""
    return "of a choice, how surely each is the best, likewise"


def better_choice(name: str, now: str, better: str, unsure: Sequence[str] = ()) -> str:
    """That the mean policy has a choice that is hardly the best.

    `unsure` are limits that the better one does not keep surely enough. Claims it of what stands,
    while the others stay. Backed by: *choices*, column "said and right".
    """
    though = f", though it is not sure enough to keep {' and '.join(unsure)}" if unsure else ""
    return (
        f"Its {name} is {now}, and {better} should be better while the others stay{though}: "
        f"`predict` says what it is worth, `fork --freeze {name}={better}` goes on with it alone."
    )


# -- what batches gained, and what the next will --


def gained(distributions: int, each: float, low: float, high: float, goal: Goal = MAXIMIZE) -> str:
    """The slope of the returns over the last distributions; empty where there are too few.

    Of the past alone: a straight line through what was told. Claims that the interval holds the
    slope of what those distributions earn in truth 95 times in a hundred. Backed by: *past*, column
    "slope held".
    """
    if not isfinite(each):
        return ""
    if not isfinite(low):
        return f"Over the last {distributions} distributions all {goal.nouns} were equal."
    verb = goal.gained
    if each < 0:
        verb, (each, low, high) = goal.lost, (-each, -high, -low)
    return (
        f"Over the last {distributions} distributions a batch {verb} {each:.2g} "
        f"(95 %: {low:.2g} to {high:.2g})."
    )


def lost(goal: Goal = MAXIMIZE, shorter: str = "") -> str:
    """What to do where the last batches surely earned less than those before: of the past.

    `shorter` is what would make the steps of the method so, if anything does.
    """
    what = "the last batches lost" if goal is MAXIMIZE else "the cost rose in the last batches"
    long, fork = (", or steps are too long", f", `fork` with {shorter}") if shorter else ("", "")
    return (
        f"Stop and look: {what}. What is rolled out may have changed{long} (`recoup study show`"
        f"{fork})."
    )


def stop(most: float, spread: float, goal: Goal = MAXIMIZE) -> str:
    """That the next batch gains less than `most`, where one return varies by `spread`.

    Claims the upper end of a 95 % interval of the gain. Backed by: *voice*.
    """
    return (
        f"Stop: the next batch would {goal.gain} less than {max(most, 0.0):.2g}, and a {goal.noun} "
        f"varies by {spread:.2g}."
    )


def stop_equal(goal: Goal = MAXIMIZE) -> str:
    """That the last batches hold nothing to go by, where no move is rehearsed: of the past."""
    return (
        f"Stop, or start elsewhere: with equal {goal.nouns} the last batches tell no better from "
        "worse."
    )


def try_the_mean(times: int, goal: Goal = MAXIMIZE) -> str:
    """How often to try the mean policy for its expected return to be known.

    Claims it of the next batch alone: in many dimensions many more of them gain what one does not.
    Backed by: *voice*, column "gain held" of the mean policy. How many it takes is
    arithmetic: so many make the error of a mean half of what one return varies by.
    """
    often = "once" if times == 1 else f"{times} times"
    return (
        f"The next batch should {goal.gain} too little to count: try the mean {often} (ask at the "
        "mean) to be sure of what it is worth."
    )


def go_on_blind(goal: Goal = MAXIMIZE) -> str:
    """That nothing can be forecast before the second batch."""
    what = "what one gains" if goal is MAXIMIZE else "by how much one lowers the cost"
    return f"Go on: two batches are needed to say {what}."


def coming(
    results: int, gain: float, low: float, high: float, whom: str, goal: Goal = MAXIMIZE
) -> str:
    """What the next move should bring to the mean policy.

    Claims that the gain is so much on average, and that the interval holds it 95 times in a
    hundred: so it does over the tasks together, with noise, and 90 times on the hardest that were
    measured. Backed by: *voice*, columns "said / true" and "gain held" of the mean policy, and
    "Intervals that reach farther on the better side".
    """
    more = "next result" if results == 1 else f"next {results} results"
    about = f"{goal.gain} about {gain:.2g}" if gain > 0 else f"{goal.gain} nothing"
    if high < 0:  # surely a loss: nothing would lie outside of the interval
        lose = "lose" if goal is MAXIMIZE else "raise the cost by"
        about, low, high = f"{lose} about {-gain:.2g}", -high, -low
    return f"the {more} should {about} for {whom} (95 %: {low:.2g} to {high:.2g})."


def coming_draw(gain: float, low: float, high: float, goal: Goal = MAXIMIZE) -> str:
    """What a draw of the distribution should gain, which is what the next trials are.

    Backed by: *voice*, columns "said / true" and "gain held" of a draw, and "Intervals that reach
    farther on the better side".
    """
    ends = f"{low:.2g} to {high:.2g}"
    word = "gain" if goal.sign > 0 else "fall in cost"
    return f"Of a draw of the distribution the {word} should be {gain:.2g} (95 %: {ends})."


def closing_in() -> str:
    """Why to go on where the mean policy should gain nothing yet.

    Claims it of the next batch. Backed by: *voice*, column "said / true" of a draw.
    """
    return "Go on: what is drawn still gets better."


def gains_still(goal: Goal = MAXIMIZE) -> str:
    """That batches have gained of late, where what comes cannot be rehearsed: of the past."""
    what = "have gained" if goal is MAXIMIZE else "have lowered the cost"
    return f"Go on: the last batches {what}."


def go_on_rare(differ: int, goal: Goal = MAXIMIZE) -> str:
    """That nothing can be learned yet from results that are all but equal."""
    if not differ:
        return (
            f"Go on, or start elsewhere: all {goal.nouns} are equal, so that nothing says yet "
            "where to go. A `fork` with another mean, or a larger std, helps most."
        )
    times = "result differs" if differ == 1 else "results differ"
    return (
        f"Go on: only {differ} {times} from all others, which is too little to say what a batch "
        "gains."
    )


def plan(search: int, gain: float, tries: int, goal: Goal = MAXIMIZE) -> str:
    """How to spend a budget: so many trials to search with, so many of the mean policy.

    Claims of the first batch what `coming` claims. Backed by: *voice*, column "said / true". What
    several batches gain together is rehearsed likewise, and was not measured.
    """
    if not search and tries == 1:
        return "With 1 trial, try the mean: a search with it should bring too little."
    if not search:
        return (
            f"Of {tries} trials, try the mean with all: a search with them should bring too little."
        )
    should = f", which should {goal.gain} about {gain:.2g}" if gain > 0 else ""
    rest = f", and try the mean {tries} times" if tries else ""
    return f"Of {search + tries} trials, search with {search}{should}{rest}."


def plan_too_few(budget: int, needed: int) -> str:
    """How to spend a budget that the next move needs more than."""
    if budget == 1:
        return f"With 1 trial, try the mean: the next move needs {needed} results."
    return f"Of {budget} trials, try the mean with all: the next move needs {needed} results."


def plan_after_loss(budget: int) -> str:
    """How to spend a budget where the last batches surely lost: of the past."""
    if budget == 1:
        return "With 1 trial, try the mean once you have looked: that says what it earns now."
    return (
        f"Of {budget} trials, search with none before you have looked: some of the mean say what "
        "it earns now."
    )


def go_on_for(names: Sequence[str]) -> str:
    """The parameters whose best value surely lies elsewhere.

    Claims it of their 95 % intervals. Backed by: *voice*, column "best held".
    """
    more = f" and {len(names) - NAMED_PARAMETERS} more" if len(names) > NAMED_PARAMETERS else ""
    which = f"{', '.join(names[:NAMED_PARAMETERS])}{more}"
    return f"Go on: {which} {'is' if len(names) == 1 else 'are'} not at the best value yet."


def go_on_perhaps(most: float, goal: Goal = MAXIMIZE) -> str:
    """The upper end of the 95 % interval of what the next batch gains. Backed by: *voice*."""
    return f"Go on: the next batch may {goal.gain} up to {most:.2g}."


# -- a distribution, judged by weights --


def judgement(
    samples: int,
    ess: float,
    explained: float,
    *,
    refused: str = "",
    unseen: float = 0.0,
    censored: int = 0,
    draw: int = 1,
    goal: Goal = MAXIMIZE,
) -> str:
    """What the judgement of a distribution rests on, or why there is none.

    `refused` is the reason that `core.worth` gives. Claims that the interval beside it holds the
    expected return 95 times in a hundred. Backed by: *coverage*.
    """
    count_for = f"{ess:.0f}" if ess >= 10 else f"{ess:.1f}"
    one = samples == 1
    count = f"{samples} result{'' if one else 's'} that count{'s' if one else ''} for {count_for}"
    left_out = left_out_here(censored)
    if refused in BY_MODEL:
        by = BY_MODEL[refused].format(samples=samples, nouns=goal.nouns)
        about = f" This is the {goal.noun} of a rollout that does not fail." if left_out else ""
        return f"{by}.{left_out}{about}"
    if refused == "equal":
        return (
            f"{count}, all {goal.nouns} equal: without any spread there is no interval.{left_out}"
        )
    if refused:
        why = f"{count} {'says' if one else 'say'} too little about it: "
        why += _why(refused, unseen, draw, goal)
        return f"{why} A few rollouts of its own would say more.{left_out}"
    rests = "it rests on weights alone"
    if explained >= LITTLE_VARIANCE:
        rests = (
            f"a model of the {goal.nouns} takes over {min(explained, 0.99):.0%} of their variance, "
            "weights correct it"
        )
    about = f" This is the {goal.noun} of a rollout that does not fail." if left_out else ""
    return f"{count}; {rests}.{left_out}{about}"


def _why(refused: str, unseen: float, draw: int, goal: Goal) -> str:
    if refused == "unseen":
        return f"{unseen:.0%} of it lies where hardly any result could have been drawn."
    if refused == "few":
        pairs = " (in pairs, 5)" if draw > 1 else ""
        return f"an interval needs six that count for {LEAST_ESS * draw:.0f}{pairs}."
    if refused == "dimensions":
        return "there are fewer than four for each parameter, so that it must be nearer to them."
    if refused == "huge":
        return f"the {goal.nouns} are too large to compute with."
    return "their weights do not average to 1, so that they miss a part of it."


def left_out_here(failures: int) -> str:
    """The failures that a judgement leaves out, after a space; empty where there are none.

    Backed by: *coverage*, the rows of failures.
    """
    if not failures:
        return ""
    return f" {failures} failed result{'s are' if failures > 1 else ' is'} left out."


def of_the_move(objective: float, low: float | None, high: float | None) -> str:
    """The estimate of a move, of the distribution that it moved from, with its interval if any.

    Claims that the interval holds that distribution's expected return 95 times in a hundred. Backed
    by: *coverage*, "The interval of a move's objective".
    """
    if not isfinite(objective):
        return "not known"
    if low is None or high is None or not isfinite(low):
        return f"{objective:.4g}, without an interval that could be believed"
    value, least, most = apart(objective, low, high)
    return f"{value} ({least} to {most}, 95 %)"


def estimates_drawn() -> str:
    """What a picture of a study's moves draws. Backed by: *coverage*, as `of_the_move`."""
    return "the estimate of each move with its 95 % interval"


def expected_drawn() -> str:
    """The same where studies are laid over each other. Backed by: *coverage*, as `of_the_move`."""
    return (
        "at each move what a draw of the distribution that it moved from was expected to earn, "
        "with its 95 % interval where there is one"
    )


def expected_of_both() -> str:
    """What a table of several studies calls expected. Backed by: *voice*, as `expected_return`."""
    return (
        f"Expected: what a rollout earns on average, with its 95 % interval, of {MEAN_POLICY} and "
        f"of {DRAW}."
    )


def replayed() -> str:
    """What the columns of a replay are. Backed by: *coverage*, as `of_the_move`."""
    return (
        "±: half of the 95 % interval, where there is one that can be believed; worth: effective "
        "sample size; apart: distance of the means, in standard deviations."
    )


def best_trial(
    trial: int,
    value: float,
    told: int,
    goal: Goal = MAXIMIZE,
    broken: int = 0,
    outside: int = 0,
) -> str:
    """The best trial: of several noisy ones, the one that was lucky, too; none that is not to have.

    `broken` is how many of the `told` have broken a limit, `outside` how many others lie outside
    of the study's bounds.
    """
    less, kept = "less" if goal is MAXIMIZE else "more", told - broken - outside
    among = f", the best of {kept} noisy {goal.nouns}: expect {less} of it" if kept > 1 else ""
    parts = [f"{broken} that broke a limit"] if broken else []
    parts += [f"{outside} outside of the bounds"] if outside else []
    left = f" ({' and '.join(parts)} left out)" if parts else ""
    return f"trial {trial}: {value:.6g}{among}{left}"


def no_best(broken: int, outside: int) -> str:
    """That no trial is the best, and why none is."""
    within = " and ".join(["the limits"] * bool(broken) + ["the bounds"] * bool(outside))
    return f"none within {within} yet" if within else "none yet"


# -- the health of reuse --


def health(samples: float, ess: float, k: float) -> str:
    """What the weights of the last move say, and what to do about it.

    Claims that below the limits errors can be trusted. Backed by: *coverage*, by effective sample
    size.
    """
    words = f"The last move used {samples:.0f} results that count for {ess:.1f}."
    if not ess >= LEAST_ESS:
        return words + " That is too little to say how good the distribution is."
    if k > TRUSTED:
        return words + (
            f" Pareto k-hat is {k:.2f}, above {TRUSTED}: a few weights decide the estimate, and "
            "its error cannot be trusted. Bounded weights (mis-pgpe-ob), a window or smaller steps "
            "help."
        )
    if ess < 0.1 * samples:
        return words + " Most of what was kept no longer counts: a window would lose little."
    return words + " The estimate rests on many of them."


def next_batch(ess: float, batch: int) -> str:
    """What reuse is worth for the next batch, by the effective sample size of the last move."""
    if ess < 1.5 * batch:
        return (
            f"Reuse adds little now: the next move rests on its own {batch} rollouts and not much "
            "else."
        )
    return (
        f"Reuse makes the next batch of {batch} about {ess / batch:.1f} times as large: what is "
        f"kept is worth {ess:.0f} fresh rollouts."
    )


def nothing_kept(method: str) -> str:
    """That a method of one batch has nothing to reuse."""
    return f"{method} keeps nothing between moves: every batch starts afresh."


# -- what is to come --


def first_move(left: int) -> str:
    """When the distribution moves for the first time."""
    return f"The distribution moves after {more_results(left)}."


def next_move(left: int) -> str:
    """When the distribution moves next."""
    return f"the next after {more_results(left)}" if left else "the next is due"


def due(missing: Sequence[str] = ()) -> str:
    """That results have filled a batch and the move is not made yet, and what makes it.

    `missing` are the parts of the method that it waits for, which only Python can give.
    """
    if not missing:
        return (
            "A move is due: the next `ask` or `tell` makes it, and what is said here of the "
            "distribution and its mean is of before it."
        )
    return (
        f"A move is due. It needs {' and '.join(missing)}, which a file cannot hold: it is made "
        "once the study is opened, or its run resumed, with it, in Python. Nothing told is lost."
    )


def twice() -> str:
    """That the next batch holds one candidate twice, and why."""
    return "The next batch tries one candidate twice, to tell noise from a rugged landscape."


def imported_left_out(method: str, imported: int) -> str:
    """That a method without weights cannot move by what others drew."""
    return (
        f"{method} has no weights, so that its moves leave out the {imported} results from "
        "elsewhere; `evaluate` uses them."
    )


def late_unweighted(method: str, late: int) -> str:
    """That late results were used as if the newest distribution had drawn them."""
    drawn, them = ("result", "was"), "it as if it"
    if late > 1:
        drawn, them = ("results", "were"), "them as if they"
    return (
        f"{late} {drawn[0]} of the last move {drawn[1]} drawn by older distributions; {method} has "
        f"no weights and uses {them} {drawn[1]} new."
    )


def late_unbounded() -> str:
    """That weights have lost their bound, and how they get it back."""
    return (
        "No result of the last move came from the newest distribution, so that its weights have no "
        "bound: tell some of the newest trials before the next."
    )


def failed_trials(trials: int, failure: str | float) -> str:
    """How many trials of a run failed, and what the search makes of those."""
    makes = {
        "censored": "nothing was learned from them",
        "avoid": "the search keeps away from where they lie",
        "worst": "each counts as the worst return",
    }
    told = makes.get(str(failure), f"each counts as a return of {failure}")
    return f"{trials} trial{'' if trials == 1 else 's'} failed: {told}."


def many_failures(share: float, avoids: bool, goal: Goal = MAXIMIZE) -> str:
    """That failures are many and left out, and what would make them fewer."""
    avoid = "`fork` with failure=avoid, " if avoids else ""
    return (
        f"{share:.0%} of the results are failures, which are left out: the search does not learn "
        f"to avoid them. Smaller standard deviations would help, {avoid}or a {goal.noun} for what "
        "now counts as failed (`fork` with failure=worst, or a number)."
    )


def waiting(trials: int) -> str:
    """How many drawn trials wait, and that none is too late."""
    several = "s wait for a result" if trials > 1 else " waits for a result"
    return (
        f"{trials} drawn trial{several}: however late, it will count with the density that drew it."
    )


def overdue(trials: Sequence[int]) -> str:
    """The trials that came back, of workers that may have died."""
    more = f" and {len(trials) - TRIALS} more" if len(trials) > TRIALS else ""
    named = f"{', '.join(map(str, trials[:TRIALS]))}{more}"
    if len(trials) == 1:
        return f"The lease of trial {named} has run out: the next `ask` hands it out again."
    return f"The leases of trials {named} have run out: the next `ask` hands them out again."


def more_results(left: int) -> str:
    """So many more results, in words."""
    return f"{left} more result{'' if left == 1 else 's'}"
