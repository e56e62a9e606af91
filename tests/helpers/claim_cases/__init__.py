"""Every claim with made-up data where it is just true, and where it is just false.

A figure's `neutral` data are not numbers, save for what only says what stands where. A case
changes them in two steps: `true` puts numbers where the claim should read them and nowhere else, a
hair beyond its threshold; each of `false` then changes one quantity a hair, so that one contrast
fails and no other does, in their order. So a claim that reads another method, iteration or step
reads no number. All runs are alike, so that only the sign of a contrast decides.
"""

from claim_cases import cars, gradients, reach, theory, toy

FIGURES = {
    name: figure
    for module in (theory, gradients, toy, cars, reach)
    for name, figure in module.FIGURES.items()
}
