// The live annealing: buttons, slices of a few milliseconds between frames, the trace, the message.
"use strict";
{
  const $ = (id) => document.getElementById(id);
  const HOT = 3, COLD = 1e-6, RUNGS = 120; // temperatures in units of P; geometric, as in the paper
  let page; // what page.js shares: the problem and its theory
  let cooled = [], heated = [], fixed = [], running = 0;

  function ladder(P) {
    return Array.from({ length: RUNGS }, (_, i) => HOT * P * (COLD / HOT) ** (i / (RUNGS - 1)));
  }

  function instance() {
    return L0.makeInstance(page.problem, Number($("size").value), Number($("seed").value));
  }

  // Run a generator in slices, so that the page answers between them; resolve with what it returns.
  async function play(steps, points) {
    const mine = ++running;
    $("stop").disabled = false;
    while (mine === running) {
      const end = performance.now() + 25;
      while (performance.now() < end) {
        const { value, done } = steps.next();
        if (done) { finish(); return value ?? true; }
        points.push(value);
      }
      draw();
      await new Promise((resolve) => setTimeout(resolve));
    }
    return null; // stopped
  }

  function finish() {
    running++;
    $("stop").disabled = true;
    draw();
  }

  function say(text, kind = "") {
    $("live-result").textContent = text;
    $("live-result").dataset.kind = kind;
  }

  // Start one of the three runs, and report a problem that cannot be run instead of failing silently.
  async function start(run) {
    try {
      if (!page.theory) throw new RangeError("Choose parameters that the theory accepts first.");
      say("Running …");
      await run(instance());
    } catch (error) {
      if (!(error instanceof RangeError || error instanceof L0.ConvergenceError)) throw error;
      say(error.message, "refused");
    }
  }

  async function cool(sample) {
    const random = new L0.Random(sample.seed, 2);
    const chain = new L0.Chain(sample, random.permutation(sample.N).slice(0, sample.k), random);
    cooled = [];
    const done = await play(L0.anneal(chain, ladder(page.theory.m.P), Number($("tau").value)), cooled);
    if (!done) return say("Stopped.");
    chain.refresh();
    return say(...judge(sample, chain));
  }

  // Compare the end of a cooling with the planted columns: the same facts that `diagnose` would need.
  function judge(sample, chain) {
    const eps = chain.energy / sample.M, hits = sample.planted.filter((j) => chain.inside.includes(j)).length;
    const counts = `${hits} of the ${sample.planted.length} planted columns are in its support of ${sample.k}.`;
    if (!sample.planted.length) {
      return [`The run ended at ε = ${L0.show(eps)}. There is no planted signal to find.`, "end"];
    }
    const rival = new L0.Chain(sample, L0.plantedStart(sample, new L0.Random(sample.seed, 3)), null).energy / sample.M;
    const y2 = sample.y.reduce((sum, v) => sum + v * v, 0) / sample.M;
    if (page.problem.noise === 0 && eps < 1e-12 * y2) {
      return [`Found: the run represents y exactly. ${counts}`, "found"];
    }
    const reached = rival < 1e-12 * y2 ? "0" : L0.show(rival);
    if (eps > rival + 1e-12 * y2) {
      const ends = `the run ended at ε = ${L0.show(eps)}, but the planted columns reach ε = ${reached}`;
      return [`Trapped: ${ends}. ${counts}`, "trapped"];
    }
    const fit = `with ε = ${L0.show(eps)} the run fits y at least as well as the planted columns (${reached})`;
    const all = hits === sample.planted.length;
    return [`${all ? "Found" : "Not trapped"}: ${fit}. ${counts}`, all ? "found" : "end"];
  }

  async function heat(sample) {
    if (!sample.planted.length) return say("There is no planted signal to heat from. Choose ρ̂ > 0.", "refused");
    const random = new L0.Random(sample.seed, 4);
    const chain = new L0.Chain(sample, L0.plantedStart(sample, random), random);
    heated = [];
    const done = await play(L0.anneal(chain, ladder(page.theory.m.P).reverse(), Number($("tau").value)), heated);
    if (!done) return say("Stopped.");
    return say("Heated from the planted columns to high temperature. Where the triangles lie below the circles, " +
      "the cooling did not find the planted state.", "end");
  }

  async function hold(sample) {
    const T = Number($("temperature").value), random = new L0.Random(sample.seed, 5);
    const sweeps = Number($("sweeps").value);
    if (!(T > 0)) throw new RangeError("The temperature must be a positive number.");
    if (!(sweeps >= 320)) throw new RangeError("At least 320 sweeps are needed to estimate the error.");
    const chain = new L0.Chain(sample, random.permutation(sample.N).slice(0, sample.k), random);
    const trace = [];
    fixed = [];
    const result = await play(L0.sampleAt(chain, T, sweeps), trace);
    if (!result) return say("Stopped.");
    page.lastFixed = result;
    fixed = [[T, result.mean]];
    draw();
    const branches = page.theory.single ? ["cooled"] : ["cooled", "planted"];
    const predictions = branches.map((b) => [b, page.theory.at(T, b)]).filter(([, state]) => state)
      .map(([b, state]) => `${page.theory.single ? "" : `${b} branch `}ε = ${L0.show(state.eps, 4)}`);
    const mean = `ε = ${L0.show(result.mean, 4)} ± ${L0.show(result.error, 2)}`;
    return say(`At T = ${L0.show(T)} the mean is ${mean}. Theory for N → ∞: ${predictions.join(", ")}.`, "end");
  }

  // Write the instance in a form that Python's json reads.
  function write({ A, y, xhat, planted, k, seed }) {
    const rows = A.map((row) => [...row]);
    $("instance").value = JSON.stringify({ seed, n_nonzero: k, planted, xhat: [...xhat], y, A: rows });
    say("The instance is in the text field.");
  }

  function draw() {
    if (!page.theory) return;
    const P = page.theory.m.P, x = { min: COLD * P, max: 4 * P, log: true, label: "temperature T" };
    const lines = page.branchLines("eps", x);
    const theory = lines.flatMap((line) => line.points.filter(([T]) => T > x.min && T < x.max).map(([, v]) => v));
    const measured = [...cooled, ...heated].map(([, v]) => v).filter((v) => v > 1e-14 * P);
    L0.drawPlot($("live-plot"), {
      title: "Distortion of the live run against temperature, over the curves of the theory",
      x, y: L0.logAxis([...theory, ...measured], "distortion ε = E/M"), lines, verticals: page.verticals,
      marks: Object.entries({ cooled, heated, fixed }).map(([style, points]) => ({ style, points })),
      height: 340,
    });
  }

  // Forget the runs of other parameters.
  function reset() {
    running++;
    [cooled, heated, fixed] = [[], [], []];
    $("stop").disabled = true;
    say("No run yet.");
    draw();
  }

  function begin(shared) {
    page = shared;
    $("cool").addEventListener("click", () => start(cool));
    $("heat").addEventListener("click", () => start(heat));
    $("hold").addEventListener("click", () => start(hold));
    $("export").addEventListener("click", () => start(write));
    $("stop").addEventListener("click", () => { finish(); say("Stopped."); });
    for (const id of ["size", "seed"]) $(id).addEventListener("change", reset);
  }

  L0.live = { begin, draw, reset };
}
