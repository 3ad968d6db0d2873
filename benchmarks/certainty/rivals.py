"""The peers: SuSiE (pysusie) and tempered Gibbs sampling (millipede-regression).

They run in an environment of their own, which needs no l0anneal; the README says how to make one. Both
have their published defaults, except where these rule out the truth: if more than 10 columns are true,
SuSiE's number of single effects and millipede's expected number of columns are set to the true number.
"""

import numpy as np
from answers import Answer, timed
from regimes import REGIMES


def susie(name, data, i):
    """Fit the sum of single effects, L = 10, with its 95 % credible sets."""
    import pysusie

    effects = max(10, REGIMES[name].n_true)
    fit, seconds = timed(pysusie.susie, data.X, data.y, L=effects)
    sets = [np.asarray(members, dtype=np.int64) for members in fit["sets"]["cs"] or []]
    state = "converged" if fit["converged"] else "not converged"
    return Answer(np.asarray(fit["pip"], dtype=float), seconds, sets, state)


def millipede(name, data, i):
    """Sample by weighted tempered Gibbs, 2000 draws after 1000 of burn-in."""
    import pandas
    import torch
    from millipede import NormalLikelihoodVariableSelector

    torch.set_num_threads(1)
    frame = pandas.DataFrame(data.X, columns=[f"x{j}" for j in range(data.X.shape[1])])
    frame["y"] = data.y
    n_true = REGIMES[name].n_true
    expected = 5.0 if n_true <= 10 else float(n_true)

    def run():
        selector = NormalLikelihoodVariableSelector(frame, "y", S=expected, precompute_XX=True)
        selector.run(T=2000, T_burnin=1000, verbosity=None, seed=i)
        return selector.pip.to_numpy()

    probability, seconds = timed(run)
    return Answer(np.clip(probability, 0.0, 1.0), seconds)


RIVALS = {"susie": susie, "millipede": millipede}
