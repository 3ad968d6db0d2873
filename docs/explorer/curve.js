// All branches together, as one curve T(a) (docs/theory.md, section 3): a port of
// l0anneal/theory/parametric.py. At given a, F(log Δ, log a) = log rhs(Δ) - log Δ = 0 gives Δ, and
// T = (1/a - D)/S0 is explicit. F = 0 is followed by arclength, which passes through folds. The
// branches are the segments with T > 0 between the extrema of T; these extrema are the spinodals.
"use strict";
{
  const T_HOT = 1000, T_COLD = 1e-11; // in units of P, the variance of one component of y
  const STEP = 0.4, DEEP = 8, MAX_POINTS = 1500;
  const UP = [0, 1], DOWN = [0, -1];
  const dot = (u, v) => u[0] * v[0] + u[1] * v[1];

  // F and the point at (log Δ, log a), with its tangent oriented along `direction`.
  function evaluate(m, x, logA, direction, guess) {
    const c = L0.channelAt(m, Math.exp(x), Math.exp(logA), guess);
    const n0 = c.deltaGradient[0] / c.deltaRhs - 1, n1 = c.deltaGradient[1] / c.deltaRhs;
    const length = Math.hypot(n0, n1), sign = n0 * direction[1] - n1 * direction[0] < 0 ? -1 : 1;
    const tangent = [(-sign * n1) / length, (sign * n0) / length];
    const inverse = Math.exp(-logA);
    const slope = -(c.dGradient[0] * tangent[0] + (inverse + c.dGradient[1]) * tangent[1]) / m.s0;
    const t = (inverse - c.dRhs) / m.s0;
    return { f: Math.log(c.deltaRhs) - x, normal: [n0, n1], x, logA, t, slope, tangent, c };
  }

  // Return to the curve by Newton's method, on the line through (x, logA) across `direction`.
  function correct(m, [x, logA], direction, guess) {
    for (let i = 0; i < 25; i++) {
      const point = evaluate(m, x, logA, direction, guess);
      guess = point.c.lam;
      if (Math.abs(point.f) <= 1e-9) return point;
      const rate = -point.normal[0] * direction[1] + point.normal[1] * direction[0];
      const step = point.f / rate;
      if (!(Math.abs(step) <= 1)) return null;
      x += step * direction[1];
      logA -= step * direction[0];
    }
    return null;
  }

  // The point between two neighbours where `value` changes sign: false position (Illinois) along a
  // cubic Hermite polynomial, which is corrected back to the curve.
  function zeroBetween(m, left, right, value) {
    const chord = [right.x - left.x, right.logA - left.logA], length = Math.hypot(...chord);
    const direction = [chord[0] / length, chord[1] / length];
    const onCurve = (u) => {
      const b0 = (1 + 2 * u) * (1 - u) ** 2, b1 = u * (1 - u) ** 2 * length;
      const b2 = u * u * (3 - 2 * u), b3 = u * u * (u - 1) * length;
      const guess = ["x", "logA"].map(
        (k, i) => b0 * left[k] + b1 * left.tangent[i] + b2 * right[k] + b3 * right.tangent[i]);
      const point = correct(m, guess, direction, left.c.lam);
      if (!point) throw new L0.ConvergenceError("the curve F = 0 was lost between two of its points");
      return point;
    };
    let best = left;
    L0.rootBetween((u) => {
      best = u === 0 ? left : u === 1 ? right : onCurve(u);
      return value(best);
    }, 0, 1, 1e-10);
    return best;
  }

  // A root of f between low and high, by the Illinois method; f is evaluated last at the result.
  function rootBetween(f, low, high, tolerance) {
    let fl = f(low), fh = f(high), side = 0;
    if (fl === 0) return f(low), low;
    if (fh === 0) return high;
    for (let i = 0; i < 100; i++) {
      const x = i % 8 === 7 ? 0.5 * (low + high) : (low * fh - high * fl) / (fh - fl);
      const fx = f(x);
      if (fx === 0) return x;
      if (fx > 0 === fh > 0) {
        const moved = high - x;
        [high, fh] = [x, fx];
        if (side === 1) fl /= 2;
        side = 1;
        if (moved < tolerance && i % 8 !== 7) return x;
      } else {
        const moved = x - low;
        [low, fl] = [x, fx];
        if (side === -1) fh /= 2;
        side = -1;
        if (moved < tolerance && i % 8 !== 7) return x;
      }
      if (high - low < tolerance) return x;
    }
    throw new L0.ConvergenceError(`no root was found between ${low} and ${high}`);
  }

  // Follow F = 0 from `start` until the curve leaves the range of temperatures.
  function trace(m, start, direction, longest = STEP) {
    const coldA = -Math.log(m.s0 * T_COLD), hotA = -Math.log(m.s0 * T_HOT);
    const top = Math.log(L0.infiniteTemperature(m)[0]) + 8;
    let first = correct(m, start, UP);
    if (!first) throw new L0.ConvergenceError(`found no point of the curve near log (Δ, a) = ${start}`);
    first = evaluate(m, first.x, first.logA, direction, first.c.lam);
    const points = [first];
    let step = longest;
    while (points.length < MAX_POINTS) {
      const last = points.at(-1), along = last.tangent;
      const guess = [last.x + step * along[0], last.logA + step * along[1]];
      const point = correct(m, guess, along, last.c.lam);
      const bend = point ? 1 - dot(along, point.tangent) : 1;
      if (bend > 0.03) {
        step /= 2;
        if (step < 1e-6 && last.t < 0) return points; // this part is not used
        if (step < 1e-6) throw new L0.ConvergenceError("the curve F = 0 could not be followed");
        continue;
      }
      points.push(point);
      if (bend < 0.01) step = Math.min(2 * step, longest);
      const back = Math.hypot(point.x - first.x, point.logA - first.logA);
      if (points.length > 10 && back < 0.5 * step) return [...points, first]; // the curve is closed
      if (point.logA > coldA || point.logA < hotA - 1 || point.x > top) return points;
      if (-point.t * m.s0 * Math.exp(point.logA) > DEEP) return points;
    }
    throw new L0.ConvergenceError(`the curve F = 0 did not end within ${MAX_POINTS} points`);
  }

  // Whether iteration at fixed T converges: both eigenvalues of the map are below one.
  function isStable({ c }) {
    const slope = -c.a * c.dRhs; // ∂log a/∂log D at fixed T
    const [gx, ga] = c.deltaGradient.map((g) => g / c.deltaRhs);
    const [dx, da] = c.dGradient.map((g) => g / c.dRhs);
    return (gx - 1) * (da * slope - 1) - ga * slope * dx > 0 && gx + da * slope < 2;
  }

  // Cut a traced curve at its spinodals and where it crosses T = 0; keep the segments with T > 0.
  function split(m, points, end) {
    const marked = [[points[0], end]];
    for (let i = 1; i < points.length; i++) {
      const [left, right] = [points[i - 1], points[i]];
      const stops = [left];
      if (left.slope > 0 !== right.slope > 0) stops.push(zeroBetween(m, left, right, (p) => p.slope));
      stops.push(right);
      for (let k = 1; k < stops.length; k++) {
        if (stops[k - 1].t > 0 !== stops[k].t > 0) {
          marked.push([zeroBetween(m, stops[k - 1], stops[k], (p) => p.t), "zero"]);
        }
        marked.push([stops[k], k < stops.length - 1 ? "spinodal" : i === points.length - 1 ? end : ""]);
      }
    }
    const segments = [];
    let run = [marked[0]];
    for (const item of marked.slice(1)) {
      run.push(item);
      if (!item[1]) continue;
      const middle = run.length > 2 ? run[run.length >> 1][0].t : 0.5 * (run[0][0].t + item[0].t);
      if (middle > 0) segments.push(makeSegment(run));
      run = [item];
    }
    return segments;
  }

  // A segment lists its points from hot to cold; the ends are "spinodal", "zero" or "open".
  function makeSegment(run) {
    if (run.at(-1)[0].t > run[0][0].t) run = [...run].reverse();
    const points = run.map((item) => item[0]), hotEnd = run[0][1], coldEnd = run.at(-1)[1];
    return {
      points, hotEnd, coldEnd,
      stable: isStable(points[points.length >> 1]),
      tLow: coldEnd === "spinodal" ? points.at(-1).t : 0,
      tHigh: hotEnd === "open" ? Infinity : points[0].t,
    };
  }

  // (log Δ, log a) at the smallest Δ with F = 0, or null if that is above Δ at infinite temperature.
  function smallestRoot(m, logA) {
    const top = Math.log(L0.infiniteTemperature(m)[0]);
    let guess; // Λ of the last evaluation
    const f = (x) => {
      const c = L0.channelAt(m, Math.exp(x), Math.exp(logA), guess);
      guess = c.lam;
      return Math.log(c.deltaRhs) - x;
    };
    const bottom = Math.min(-1.5 * logA - 12, top - 12);
    for (let x = bottom + f(bottom) - 0.5; x < top; x += 0.5) {
      if (f(x) > 0) continue;
      return f(x - 0.5) > 0 ? [rootBetween(f, x - 0.5, x, 1e-8), logA] : null;
    }
    return null;
  }

  // The part of the curve that is joined to high temperatures, and whether it reaches T_COLD.
  function hotCurve(m, longest = STEP) {
    const [delta, d] = L0.infiniteTemperature(m);
    const points = trace(m, [Math.log(delta), -Math.log(T_HOT * m.s0 + d)], UP, longest);
    return { points, arrives: points.at(-1).logA > -Math.log(m.s0 * T_COLD) };
  }

  // All segments with T > 0, from the high-temperature end to the planted end.
  function allSegments(m) {
    const { points, arrives } = hotCurve(m), cold = -Math.log(m.s0 * T_COLD);
    const segments = split(m, points, "open");
    if (!m.planted || arrives) return segments;
    // The planted branch may be a separate curve, not joined to the hot one even below T = 0.
    const known = [...points], separate = [];
    for (let logA = cold - 0.5; logA > points[0].logA; logA -= 1) {
      const root = smallestRoot(m, logA);
      if (!root || known.some((p) => Math.hypot(p.x - root[0], p.logA - root[1]) < 2 * STEP)) continue;
      if (evaluate(m, ...root, UP).t <= 0) continue;
      let piece = trace(m, root, UP);
      if (piece.at(-1) === piece[0]) {
        // Cut a closed curve at its coldest point, which is below T = 0 or at a spinodal.
        const open = piece.slice(0, -1), coldest = open.reduce((b, p, i) => (p.t < open[b].t ? i : b), 0);
        piece = [...open.slice(coldest), ...open.slice(0, coldest + 1)];
        separate.push(...split(m, piece, "spinodal"));
      } else {
        const back = trace(m, root, DOWN).slice(1).reverse().map((p) => (
          { ...p, slope: -p.slope, tangent: p.tangent.map((v) => -v) }));
        piece = [...back, ...piece];
        separate.push(...split(m, piece, "open"));
      }
      known.push(...piece);
    }
    const lowest = (segment) => Math.min(...segment.points.map((p) => p.x));
    return [...segments, ...separate.sort((a, b) => lowest(b) - lowest(a))];
  }

  Object.assign(L0, { T_COLD, allSegments, hotCurve, zeroBetween, rootBetween });
}
