// Which method can work at these parameters: the rules of l0anneal's theory, put into sentences.
// Limits of recovery: theory.phase_diagram; the trap: ReplicaSymmetric.spinodals and metastability;
// what to do about it: the advice of diagnose.
"use strict";
{
  const show = (v, digits = 3) => (v === 0 ? "0" : v < 1e-3 ? v.toExponential(digits - 1).replace("e-", "e−") : String(Number(v.toPrecision(digits))));

  // Rows of {method, verdict, text}; a verdict is "can work", "cannot work" or "no limit known here".
  function advise(theory, marks, limits) {
    const { rhoHat, noise } = theory.problem;
    if (rhoHat === 0) return onNoiseOnly(theory, marks);
    return noise > 0 ? withNoise(theory, marks) : withoutNoise(theory, marks, limits);
  }

  const can = (condition) => (condition ? "can work" : "cannot work");

  function withoutNoise({ problem, single }, { spinodals }, { amp, l1 }) {
    const { alpha, rho, rhoHat } = problem;
    const possible = alpha > rhoHat, fits = rho >= rhoHat, trapped = !single && spinodals.cooling === null;
    const limit = (value) => `It recovers x̂ for α > ${show(value, 4)}; here α = ${show(alpha)}.`;
    let annealing = "There is one branch only, so slow cooling reaches the planted state.";
    if (!possible) annealing = "No method recovers x̂ for α ≤ ρ̂.";
    else if (!fits) annealing = "A support of ρN columns cannot contain the ρ̂N planted ones. Choose ρ ≥ ρ̂.";
    else if (trapped) annealing = "The cooled branch continues to T = 0: slow cooling stays in it and does not find x̂. If ρ is a guess, try a smaller one: it suppresses metastable states.";
    else if (!single) annealing = `The cooled branch ends at T = ${show(spinodals.cooling)}; there slow cooling reaches the planted state.`;
    return [
      { method: "Annealing at this ρ (anneal)", verdict: can(possible && fits && !trapped), text: annealing },
      evidence(possible),
      { method: "Bayes-optimal message passing", verdict: can(alpha > amp), text: `${limit(amp)} It has to know the law of x̂.` },
      { method: "l1 (basis pursuit)", verdict: can(alpha > l1), text: limit(l1) },
      { method: "Exhaustive search (l0)", verdict: can(possible), text: `${limit(rhoHat)} It takes time exponential in N.` },
    ];
  }

  function evidence(possible) {
    const method = "Evidence annealing (evidence_anneal)";
    if (!possible) return { method, verdict: "cannot work", text: "No method recovers x̂ for α ≤ ρ̂." };
    return { method, verdict: "no limit known here", text: "It leaves the number of columns open and is not caught in this trap. The theory of this page does not compute its limit; diagnose recommends it if the signal is sparse." };
  }

  function withNoise(theory, { spinodals, freezing }) {
    const { problem, single } = theory, trapped = !single && spinodals.cooling === null;
    const unit = ` A zero answer has ${show(problem.rhoHat)}.`;
    const cold = freezing ?? theory.cooled.states.at(-1);
    let text = `There is one branch only, so no trap. When it is cold its mean squared error is ${show(cold.mse)}.${unit}`;
    if (trapped) text = `The cooled branch continues to T = 0 beside the planted one: slow cooling stays in it, with the mean squared error ${show(cold.mse)} instead of ${show(theory.planted.states.at(-1).mse)}.${unit}`;
    else if (!single) text = `The cooled branch ends at T = ${show(spinodals.cooling)}; there slow cooling reaches the planted state.`;
    const error = L0.ampError(problem);
    const passing = error === null ? "α is too close to its threshold to compute its error here." : `Its mean squared error is ${show(error)}; it has to know the law of x̂.${unit}`;
    return [
      { method: "Exact recovery, by any method", verdict: "cannot work", text: "There is noise. What differs between methods is the mean squared error per column." },
      { method: "Annealing at this ρ (anneal)", verdict: can(!trapped && cold.mse < problem.rhoHat), text },
      evidence(problem.alpha > problem.rhoHat),
      { method: "Bayes-optimal message passing", verdict: can(error !== null && error < problem.rhoHat), text: passing },
    ];
  }

  function onNoiseOnly({ problem }, { freezing, instability }) {
    const { lasso, refit } = L0.l1OnNoise(problem);
    const glassy = instability ? ` Replica symmetry is unstable below T = ${show(instability.T)}, so the true minimum is expected above this value.` : "";
    const floor = freezing ? `Its distortion cannot fall below ε = ${show(freezing.eps)}, where the entropy vanishes.${glassy}` : "The entropy stays positive.";
    return [
      { method: "Recovery, by any method", verdict: "cannot work", text: "There is nothing to recover: y is noise. The task is to approximate y with few columns." },
      { method: "Annealing at this ρ (anneal)", verdict: "can work", text: `There is one branch only. ${floor}` },
      { method: "l1 (LASSO)", verdict: "can work", text: `With as many columns it reaches ε = ${show(lasso)}, and ${show(refit)} after least squares on its columns.` },
    ];
  }

  Object.assign(L0, { advise, show });
}
