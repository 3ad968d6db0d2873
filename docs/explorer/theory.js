// The replica-symmetric theory of one problem: branches, states at any temperature, and landmarks.
// A port of replica.py, branches.py and landmarks.py in l0anneal/theory; temperatures of the interface
// are not divided by P.
"use strict";
{
  class Theory {
    // `problem` has alpha, rho, rhoHat and noise; σx² = 1.
    constructor(problem) {
      this.problem = problem;
      this.m = L0.makeModel(problem);
      this.segments = L0.allSegments(this.m);
      const stable = this.segments.filter((segment) => segment.stable);
      this.cooled = new Branch(this.m, stable[0]);
      this.planted = stable.length > 1 ? new Branch(this.m, stable.at(-1)) : this.cooled;
      this.single = stable.length === 1;
      this.unstable = this.segments.filter((segment) => !segment.stable)
        .map((segment) => segment.points.filter((p) => p.t > 1e-14).map((p) => L0.observe(p.c, p.t)));
    }

    // The state of a branch ("cooled", "planted" or "equilibrium") at temperature T, or null where the
    // branch does not exist.
    at(T, branch = "equilibrium") {
      if (branch !== "equilibrium") return this[branch].at(T / this.m.P);
      const states = [this.cooled, this.planted].map((b) => b.at(T / this.m.P)).filter(Boolean);
      return states.reduce((a, b) => (b.g > a.g ? b : a));
    }

    // Where the cooled branch ends on cooling and the planted branch on heating; null if it does not.
    spinodals() {
      const { tLow } = this.cooled.segment, { tHigh } = this.planted.segment, P = this.m.P;
      if (this.single) return { cooling: null, planted: null };
      return { cooling: tLow > 0 ? tLow * P : null, planted: tHigh < Infinity ? tHigh * P : null };
    }

    // The first-order transition, where both branches have the same g, or null.
    transition() {
      if (this.single) return null;
      const [c, p] = [this.cooled.segment, this.planted.segment];
      const low = Math.max(c.tLow, p.tLow) * (1 + 1e-7), top = Math.log(Math.min(c.tHigh, p.tHigh) * (1 - 1e-7));
      const advantage = (y) => this.planted.at(Math.exp(y)).g - this.cooled.at(Math.exp(y)).g;
      let bottom = low > 0 ? Math.log(low) : top - 2;
      if (!(bottom < top) || advantage(top) >= 0) return null;
      while (low === 0 && bottom > Math.log(L0.T_COLD) + 2 && advantage(bottom) <= 0) bottom -= 2;
      if (advantage(bottom) <= 0) return null;
      const t = Math.exp(L0.rootBetween(advantage, bottom, top, 1e-9));
      return { T: t * this.m.P, cooled: this.cooled.at(t), planted: this.planted.at(t) };
    }

    // The first state on cooling at which s vanishes (freezing), or null above T = 1e-11 P.
    freezing(branch = "cooled") {
      return this[branch].first((state) => -state.s);
    }

    // The first state on cooling at which replica symmetry is unstable (de Almeida-Thouless), or null.
    instability(branch = "cooled") {
      return this[branch].first((state) => state.at - 1);
    }
  }

  // A stable segment as a list of states from hot to cold, close enough to draw and to start Newton.
  class Branch {
    constructor(m, segment) {
      this.m = m;
      this.segment = segment;
      this.states = [];
      for (const p of segment.points.filter((p) => p.t > L0.T_COLD)) {
        // T is a difference of 1/a and D: where it has lost digits, the fixed-temperature solver goes on.
        if (p.t * m.s0 * Math.exp(p.logA) < 1e-6 && this.states.length) break;
        this.#followTo(p.t);
        this.states.push(L0.observe(p.c, p.t));
      }
      if (segment.coldEnd !== "spinodal") this.#followTo(L0.T_COLD / 2);
    }

    // Add states at fixed T until t is close. A branch that reaches T = 0 at a finite a has hardly any
    // points of the curve at small T, and most of the others change little there.
    #followTo(t) {
      const { m, states } = this;
      for (;;) {
        const now = states.at(-1), before = states.at(-2) ?? now;
        const ratio = now && now.T / m.P > 1e-3 ? 1.4 : 2;
        if (!now || now.T / m.P < 1.25 * ratio * t) return;
        const next = now.T / m.P / ratio;
        const rate = before === now ? 0 : Math.log(ratio) / Math.log(before.T / now.T);
        const guess = (k) => now[k] + rate * (now[k] - before[k]);
        const state = L0.newton(m, next, guess("x"), guess("logD")) ?? L0.newton(m, next, now.x, now.logD);
        if (!state) throw new L0.ConvergenceError(`a branch could not be followed to T = ${next} P`);
        states.push(state);
      }
    }

    covers(t) {
      return this.segment.tLow < t && t < this.segment.tHigh;
    }

    // The state at temperature t (in units of P), or null outside the branch.
    at(t) {
      if (!this.covers(t)) return null;
      const T = t * this.m.P, { states, m } = this;
      let i = states.findIndex((state) => state.T <= T);
      if (i < 0) i = states.length - 1;
      i = Math.max(i, 1);
      const [hot, cold] = [states[i - 1], states[i]];
      const u = Math.log(hot.T / T) / Math.log(hot.T / cold.T);
      // Next to a spinodal Newton may land on the unstable branch, so the curve is followed instead.
      const { hotEnd, coldEnd } = this.segment;
      const atEnd = (i === 1 && hotEnd === "spinodal") || (i === states.length - 1 && coldEnd === "spinodal");
      const near = (k) => hot[k] + u * (cold[k] - hot[k]);
      return (atEnd ? null : L0.newton(m, t, near("x"), near("logD"))) ?? this.#onCurve(t);
    }

    #onCurve(t) {
      const { points } = this.segment, i = points.findIndex((p) => p.t <= t);
      if (i < 1) throw new L0.ConvergenceError(`T = ${t} P is not on this segment of the curve`);
      const point = L0.zeroBetween(this.m, points[i - 1], points[i], (p) => p.t - t);
      return L0.observe(point.c, point.t);
    }

    // The first state on cooling where `value` becomes positive, or null.
    first(value) {
      const i = this.states.findIndex((state) => value(state) > 0);
      if (i < 1) return null;
      const [hot, cold] = [this.states[i - 1], this.states[i]].map((s) => Math.log(s.T / this.m.P));
      let state;
      L0.rootBetween((y) => value((state = this.at(Math.exp(y)) ?? this.states[i])), cold, hot, 1e-10);
      return state;
    }
  }

  Object.assign(L0, { Theory });
}
