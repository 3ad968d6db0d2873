// Which method can work at these parameters: the rules of l0anneal's theory, put into sentences.
// Limits of recovery: theory.phase_diagram; the trap: ReplicaSymmetric.spinodals and metastability;
// what to do about it: the advice of diagnose.
"use strict";
{
  const MESSAGE_PASSING = "Bayes-optimal message passing";
  const ANNEALING = "Annealing at this ρ (anneal)";
  const EVIDENCE = "Evidence annealing (evidence_anneal)";
  const HOPELESS = "No method recovers x̂ for α ≤ ρ̂.";

  // A positive number with a few digits, for sentences and tables.
  function show(value, digits = 3) {
    if (value === 0) return "0";
    if (value < 1e-3) return value.toExponential(digits - 1).replace("e-", "e−");
    return String(Number(value.toPrecision(digits)));
  }

  // Rows of {method, verdict, text}; a verdict is "can work", "cannot work" or "no limit known here".
  function advise(theory, marks, limits) {
    const { rhoHat, noise } = theory.problem;
    if (rhoHat === 0) return onNoiseOnly(theory, marks);
    return noise > 0 ? withNoise(theory, marks) : withoutNoise(theory, marks, limits);
  }

  const statement = (method, works, text) => ({ method, verdict: works ? "can work" : "cannot work", text });

  function withoutNoise({ problem, single }, { spinodals }, { amp, l1 }) {
    const { alpha, rho, rhoHat } = problem;
    const possible = alpha > rhoHat, fits = rho >= rhoHat, trapped = !single && spinodals.cooling === null;
    const limit = (value) => `It recovers x̂ for α > ${show(value, 4)}; here α = ${show(alpha)}.`;
    let text = "There is one branch only, so slow cooling reaches the planted state.";
    if (!possible) text = HOPELESS;
    else if (!fits) text = "A support of ρN columns cannot contain the ρ̂N planted ones. Choose ρ ≥ ρ̂.";
    else if (trapped) {
      text = "The cooled branch continues to T = 0: slow cooling stays in it and does not find x̂. " +
        "If ρ is a guess, try a smaller one: it suppresses metastable states.";
    } else if (!single) {
      text = `The cooled branch ends at T = ${show(spinodals.cooling)}; there slow cooling reaches the planted state.`;
    }
    return [
      statement(ANNEALING, possible && fits && !trapped, text),
      evidence(possible),
      statement(MESSAGE_PASSING, alpha > amp, `${limit(amp)} It has to know the law of x̂.`),
      statement("l1 (basis pursuit)", alpha > l1, limit(l1)),
      statement("Exhaustive search (l0)", possible, `${limit(rhoHat)} It takes time exponential in N.`),
    ];
  }

  function evidence(possible) {
    if (!possible) return statement(EVIDENCE, false, HOPELESS);
    const text = "It leaves the number of columns open and is not caught in this trap; diagnose recommends it if " +
      "the signal is sparse. The theory of this page does not compute its limit.";
    return { method: EVIDENCE, verdict: "no limit known here", text };
  }

  function withNoise(theory, { spinodals, freezing }) {
    const { problem, single } = theory, trapped = !single && spinodals.cooling === null;
    const cold = freezing ?? theory.cooled.states.at(-1);
    const other = theory.freezing("planted") ?? theory.planted.states.at(-1); // the same, if there is one branch
    const unit = `The answer x = 0 has ${show(problem.rhoHat)}.`;
    let text = `There is one branch only, and no trap. When it is cold its error is ${show(cold.mse)}. ${unit}`;
    if (trapped) {
      text = "The cooled branch continues to T = 0 beside the planted one, and slow cooling stays in it. " +
        `When it is cold its error is ${show(cold.mse)} instead of ${show(other.mse)}. ${unit}`;
    } else if (!single) {
      text = `The cooled branch ends at T = ${show(spinodals.cooling)}; there slow cooling reaches the planted ` +
        `branch, whose error is ${show(other.mse)} when it is cold. ${unit}`;
    }
    const error = L0.ampError(problem);
    const passing = error === null
      ? "α is too close to its threshold to compute its error here."
      : `Its error is ${show(error)}; it has to know the law of x̂. ${unit}`;
    return [
      statement("Exact recovery, by any method", false,
        "There is noise. What differs between methods is the mean squared error per column."),
      statement(ANNEALING, !trapped && other.mse < problem.rhoHat, text),
      evidence(problem.alpha > problem.rhoHat),
      statement(MESSAGE_PASSING, error !== null && error < problem.rhoHat, passing),
    ];
  }

  function onNoiseOnly({ problem }, { freezing, instability }) {
    const { lasso, refit } = L0.l1OnNoise(problem);
    let text = "There is one branch only, and its entropy stays positive.";
    if (freezing) {
      text = `There is one branch only. Its distortion cannot fall below ε = ${show(freezing.eps)}, where the ` +
        "entropy vanishes.";
    }
    if (instability) {
      text += ` Replica symmetry is unstable below T = ${show(instability.T)}, so the true minimum is expected ` +
        "above this value.";
    }
    return [
      statement("Recovery, by any method", false,
        "There is nothing to recover: y is noise. The task is to approximate y with few columns."),
      statement(ANNEALING, true, text),
      statement("l1 (LASSO)", true,
        `With as many columns it reaches ε = ${show(lasso)}, and ${show(refit)} after least squares on them.`),
    ];
  }

  Object.assign(L0, { advise, show });
}
