// The controls, the four panels and the tables. `L0.page` holds the problem and its theory.
"use strict";
{
  const $ = (id) => document.getElementById(id);
  const PRESETS = {
    easy: [0.8, 0.4, 0.2, 0], fewer: [0.75, 0.55, 0.5, 0], hard: [0.75, 0.65, 0.5, 0],
    noisy: [0.75, 0.6, 0.3, 0.01], noise: [0.5, 0.2, 0, 1],
  };
  const NAMES = ["alpha", "rho", "rhoHat", "noise"];
  const page = { problem: null, theory: null, marks: null, lastFixed: null, branchLines, verticals: [] };
  const format = (v) => (v === null || v === undefined ? "none" : L0.show(v, 5));
  let diagram = null, search = 0;

  // ---- controls. The slider of the noise is logarithmic; its leftmost position is 0.
  function fromSlider(name, position) {
    if (name !== "noise" || position <= 0) return position;
    return Number((10 ** (-6 + (position - 1) / 10)).toPrecision(3));
  }

  function toSlider(name, value) {
    if (name !== "noise" || value <= 0) return value;
    return Math.max(1, 1 + 10 * (Math.log10(value) + 6));
  }

  function set(name, value) {
    $(name).value = value;
    const slider = $(`${name}-slider`);
    slider.value = toSlider(name, value);
    slider.setAttribute("aria-valuetext", String(value));
  }

  function read() {
    return Object.fromEntries(NAMES.map((name) => [name, $(name).value === "" ? NaN : Number($(name).value)]));
  }

  // What is wrong with the parameters, as Python's checks say it, or "".
  function complaint({ alpha, rho, rhoHat, noise }) {
    if (!(alpha > 0 && alpha <= 1)) return "α must lie between 0 and 1 on this page.";
    if (!(rho > 0 && rho < 1)) return "ρ must lie strictly between 0 and 1.";
    if (!(rho < alpha)) return "ρ must be smaller than α. Select fewer columns or take more measurements.";
    if (!(rhoHat >= 0 && rhoHat < 1)) return "ρ̂ must be at least 0 and below 1.";
    if (!(noise >= 0 && noise < 1e6)) return "The noise variance must be a number ≥ 0.";
    if (rhoHat + noise === 0) return "y would be zero. Give a signal (ρ̂ above 0) or noise (σ² above 0).";
    return "";
  }

  // ---- solving and drawing
  function update() {
    const begin = performance.now(), problem = read(), problems = complaint(problem);
    page.problem = problem;
    page.theory = null;
    search++;
    try {
      if (problems) throw new RangeError(problems);
      const theory = new L0.Theory(problem);
      page.marks = {
        spinodals: theory.spinodals(), transition: theory.transition(),
        freezing: theory.freezing(), instability: theory.instability(),
      };
      page.theory = theory;
      page.verticals = verticals(page.marks);
      $("status").textContent = "";
    } catch (error) {
      if (!(error instanceof RangeError || error instanceof L0.ConvergenceError)) throw error;
      $("status").textContent = problems ||
        `The solver did not converge here: ${error.message}. Change a parameter a little.`;
    }
    document.body.classList.toggle("refused", !page.theory);
    if (page.theory) {
      history.replaceState(null, "", `#${NAMES.map((name) => `${name}=${problem[name]}`).join("&")}`);
      showMethods();
      draw();
      showTables();
    }
    L0.live.reset();
    page.milliseconds = performance.now() - begin;
  }

  function verticals({ transition, spinodals, freezing, instability }) {
    const found = [
      [transition?.T, "transition", "T_c"], [freezing?.T, "freezing", "s = 0"], [instability?.T, "instability", "AT"],
      [spinodals.planted, "spinodal", "spinodal"], [spinodals.cooling, "spinodal", "spinodal"],
    ];
    return found.filter(([T]) => T > 0).map(([x, style, label]) => ({ x, style, label }));
  }

  // The branches as lines of [T, value]; equilibrium is the branch with the larger g.
  function branchLines(name) {
    const { theory, marks } = page, pick = (states) => states.map((s) => [s.T, s[name]]);
    if (theory.single) {
      const frozen = marks.freezing?.T ?? 0;
      const shown = theory.cooled.states.filter((s) => s.T > frozen);
      return [{ points: pick(marks.freezing ? [...shown, marks.freezing] : shown), style: "equilibrium" }];
    }
    const lines = [
      { points: pick(theory.cooled.states), style: "cooled" },
      { points: pick(theory.planted.states), style: "planted" },
      ...theory.unstable.map((states) => ({ points: pick(states), style: "unstable" })),
    ];
    const { transition } = marks;
    if (!transition) return lines;
    const above = [...theory.cooled.states.filter((s) => s.T > transition.T), transition.cooled];
    const below = [transition.planted, ...theory.planted.states.filter((s) => s.T < transition.T)];
    return [{ points: pick(above), style: "equilibrium" }, { points: pick(below), style: "equilibrium" }, ...lines];
  }

  // The temperatures to show: they contain the transition and the freezing point, as in Python's figure.
  function range() {
    const { m } = page.theory, { transition, freezing } = page.marks;
    let low = 1e-5 * m.P;
    if (transition) {
      low = Math.min(low, transition.T / 30);
      if (freezing) low = Math.max(Math.min(low, freezing.T / 3), 1e-9 * m.P);
    } else if (freezing) low = Math.max(freezing.T / 1.5, 1e-9 * m.P);
    return { min: low, max: 3 * m.P, log: true, label: "temperature T = 1/μ" };
  }

  function draw() {
    if (!page.theory) return;
    const x = range();
    const panels = [
      ["eps", "distortion ε = E/M"], ["s", "entropy s per column (nats)"],
      ["mse", page.problem.rhoHat ? "mean squared error per column" : "‖x‖² per column"],
    ];
    for (const [name, label] of panels) {
      const lines = branchLines(name);
      const values = lines.flatMap((line) => line.points.filter(([T]) => T >= x.min && T <= x.max).map(([, v]) => v));
      let y = L0.logAxis(values, label);
      if (name === "s") y = { min: Math.max(Math.min(0, ...values), -0.3), max: Math.max(...values) * 1.05, label };
      L0.drawPlot($(`${name}-plot`), { title: `${label} against temperature`, x, y, lines, verticals: page.verticals });
    }
    drawDiagram();
  }

  function drawDiagram() {
    const grid = Array.from({ length: 41 }, (_, i) => i / 40);
    diagram ??= grid.map((r) => ({ r, amp: L0.ampLimit(r), l1: L0.l1Limit(r) })); // it never changes
    const line = (name) => diagram.map((d) => [d.r, d[name]]), { alpha, rhoHat } = page.problem;
    const side = rhoHat > 0.6 ? -0.03 : 0.03; // of the mark, on which its text has room
    const axis = (label) => ({ min: 0, max: 1, label });
    L0.drawPlot($("phase-plot"), {
      title: "Least α for recovery without noise, against ρ̂, with the current problem marked",
      x: axis("planted fraction ρ̂"), y: axis("measurements per column α"), height: 340,
      areas: [
        { points: [[0, 0], [1, 0], [1, 1]], style: "impossible" },
        { points: [[0, 1], ...line("l1")], style: "easy" },
      ],
      lines: [
        { points: line("l1"), style: "l1" }, { points: line("amp"), style: "amp" },
        { points: [[0, 0], [1, 1]], style: "l0" },
      ],
      marks: [{ points: [[rhoHat, alpha]], style: "here" }],
      texts: [
        { x: 0.72, y: 0.3, text: "no method succeeds" }, { x: 0.2, y: 0.88, text: "l1 succeeds" },
        { x: rhoHat + side, y: alpha, text: "you are here", style: "here-text", anchor: side < 0 ? "end" : "start" },
      ],
    });
  }

  // ---- words and tables
  function row(cells, header = true) {
    const tr = document.createElement("tr");
    cells.forEach((cell, i) => {
      const td = document.createElement(header && i === 0 ? "th" : "td");
      if (header && i === 0) td.scope = "row";
      td.textContent = cell;
      tr.append(td);
    });
    return tr;
  }

  function showMethods() {
    const { problem, theory, marks } = page;
    const limits = { amp: L0.ampLimit(problem.rhoHat), l1: L0.l1Limit(problem.rhoHat) };
    page.limits = limits;
    const rows = L0.advise(theory, marks, limits);
    $("summary").textContent = rows.map(({ method, verdict }) => `${method}: ${verdict}.`).join(" ");
    $("methods").replaceChildren(...rows.map(({ method, verdict, text }) => {
      const [item, name, word] = ["li", "strong", "span"].map((tag) => document.createElement(tag));
      [name.textContent, word.textContent] = [method, verdict];
      word.className = `verdict ${verdict.replaceAll(" ", "-")}`;
      item.append(name, " ", word, document.createElement("br"), text);
      return item;
    }));
    $("onset").textContent = "";
    page.metastability = null;
    const { alpha, rhoHat, noise } = problem;
    if (noise === 0 && rhoHat > 0 && rhoHat < alpha - 0.02) searchOnset(alpha, rhoHat, ++search);
  }

  // Which ρ have no metastable state: computed in the background once the sliders rest.
  async function searchOnset(alpha, rhoHat, mine) {
    await new Promise((resolve) => setTimeout(resolve, 600));
    const steps = L0.metastability(alpha, rhoHat);
    for (;;) {
      if (mine !== search) return;
      const { value, done } = steps.next();
      if (done) {
        page.metastability = value;
        $("onset").textContent = onsetText(value, rhoHat);
        return;
      }
      await new Promise((resolve) => setTimeout(resolve));
    }
  }

  function onsetText({ onset, trapped }, rhoHat) {
    if (onset === null) return "At this α and ρ̂ there is no metastable state for any ρ between ρ̂ and α.";
    const first = onset === rhoHat
      ? "there is a metastable state for every ρ above ρ̂"
      : `there is no metastable state for ρ < ${onset.toFixed(3)}`;
    const second = trapped === null
      ? "annealing leaves it at a spinodal above T = 0 for every ρ"
      : `annealing stays in it down to T = 0 for ρ > ${trapped.toFixed(3)}`;
    return `At this α and ρ̂ ${first}, and ${second}.`;
  }

  function showTables() {
    const { theory, marks } = page, { transition, spinodals, freezing, instability } = marks;
    const stays = spinodals.cooling === null && !theory.single;
    const end = stays ? "none, it continues to T = 0" : format(spinodals.cooling);
    const below = theory.cooled.segment.coldEnd === "zero" ? `below ${format(1e-11 * theory.m.P)}` : "none";
    const frozen = freezing ? `${format(freezing.T)}, at ε = ${format(freezing.eps)}` : below;
    $("landmarks").replaceChildren(
      row(["Transition T_c, where both branches have the same weight", format(transition?.T)]),
      row(["Planted branch ends on heating (spinodal)", format(spinodals.planted)]),
      row(["Cooled branch ends on cooling (spinodal)", end]),
      row(["Cooled branch freezes, s = 0", frozen]),
      ...(theory.single ? [] : [row(["Planted branch freezes, s = 0", format(theory.freezing("planted")?.T)])]),
      row(["Replica symmetry is unstable below (AT line)", format(instability?.T)]),
    );
    const { min, max } = range(), rows = [];
    for (let n = Math.floor(Math.log10(max)); 10 ** n >= min; n--) {
      for (const name of theory.single ? ["equilibrium"] : ["cooled", "planted"]) {
        const state = theory.at(10 ** n, name);
        if (!state) continue;
        const entropy = state.s.toFixed(4).replace("-", "−"), stable = state.at < 1 ? "yes" : "no";
        rows.push(row([L0.show(10 ** n, 1), name, format(state.eps), format(state.mse), entropy, stable]));
      }
    }
    $("numbers").replaceChildren(...rows);
  }

  // ---- start
  function begin() {
    const words = new URLSearchParams(location.hash.slice(1));
    NAMES.forEach((name, i) => set(name, words.has(name) ? Number(words.get(name)) : PRESETS.hard[i]));
    let waiting = false;
    const later = () => { // at most one update in each frame, however fast the slider moves
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; update(); });
    };
    for (const name of NAMES) {
      const slider = $(`${name}-slider`), number = $(name);
      slider.addEventListener("input", () => { set(name, fromSlider(name, Number(slider.value))); later(); });
      number.addEventListener("input", () => {
        if (number.value !== "") slider.value = toSlider(name, Number(number.value));
        slider.setAttribute("aria-valuetext", number.value);
        later();
      });
    }
    for (const button of document.querySelectorAll("[data-preset]")) {
      button.addEventListener("click", () => {
        PRESETS[button.dataset.preset].forEach((value, i) => set(NAMES[i], value));
        update();
      });
    }
    let width = 0;
    new ResizeObserver(() => { // plots are drawn for the width of the page, so that text keeps its size
      if (document.body.clientWidth === width) return;
      width = document.body.clientWidth;
      draw();
      L0.live.draw();
    }).observe(document.body);
    L0.live.begin(page);
    update();
  }

  L0.page = page;
  L0.page.update = update;
  begin();
}
