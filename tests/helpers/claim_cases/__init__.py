"""Every claim with made-up data where it is just true, and where it is just false.

A figure's `neutral` data say nothing. A case changes them in two steps: `true` puts the one signal
where the claim should read it, a hair beyond its threshold, with decoys beside it; each of `false`
then changes one quantity a hair, so that one contrast fails and no other does, in their order.
All runs are alike, so that only the sign of a contrast decides.
"""

from claim_cases import cars, gradients, reach, theory, toy

FIGURES = {
    name: figure
    for module in (theory, gradients, toy, cars, reach)
    for name, figure in module.FIGURES.items()
}
