// Line plots as SVG. Colours and dashes are classes of style.css, so that dark mode needs no redrawing.
"use strict";
{
  const NS = "http://www.w3.org/2000/svg";
  const MARGIN = { left: 58, right: 12, top: 34, bottom: 42 };

  function element(parent, name, attributes = {}, text = "") {
    const node = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.textContent = text;
    parent.append(node);
    return node;
  }

  // 10ⁿ with a raised exponent, or a plain number.
  function tickLabel(value, log) {
    if (!log) return String(Number(value.toPrecision(6))).replace("-", "−");
    const raised = String(Math.round(Math.log10(value))).replace(/./g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻");
    return raised === "⁰" ? "1" : `10${raised}`;
  }

  function ticksOf({ min, max, log }, most) {
    const ticks = [];
    if (log) {
      const [low, high] = [Math.ceil(Math.log10(min) - 1e-9), Math.floor(Math.log10(max) + 1e-9)];
      const every = Math.max(1, Math.ceil((high - low) / most));
      for (let n = Math.ceil(low / every) * every; n <= high; n += every) ticks.push(10 ** n);
      return ticks;
    }
    const rough = (max - min) / most, unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * unit).find((s) => s >= rough);
    for (let v = Math.ceil(min / step - 1e-9) * step; v <= max + 1e-9 * step; v += step) ticks.push(v);
    return ticks;
  }

  // The range of positive values as an axis: logarithmic, to whole decades, at most `decades` of them.
  function logAxis(values, label, decades = 12) {
    const good = values.filter((v) => v > 0 && v < Infinity);
    if (!good.length) return { min: 0.1, max: 1, log: true, label };
    const max = 10 ** Math.ceil(Math.log10(Math.max(...good)) + 1e-9);
    const min = Math.max(10 ** Math.floor(Math.log10(Math.min(...good)) - 1e-9), max * 10 ** -decades);
    return { min, max, log: true, label };
  }

  // Draw into `svg`: lines [{points, style}], verticals [{x, style, label}], marks [{points, style}],
  // areas [{points, style}] and texts [{x, y, text}]. Values below the y axis are drawn on its lower edge.
  function drawPlot(svg, plot) {
    const { x, y, lines, verticals = [], marks = [], areas = [], texts = [], title, height = 260 } = plot;
    const width = Math.max(240, svg.parentElement.clientWidth);
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    const right = width - MARGIN.right, bottom = height - MARGIN.bottom;
    const scale = (axis, from, to) => (v) => {
      const part = (u, low, high) => (u - low) / (high - low);
      const f = axis.log ? part(...[v, axis.min, axis.max].map(Math.log)) : part(v, axis.min, axis.max);
      return from + (to - from) * Math.min(Math.max(f, -0.5), 1.5);
    };
    const px = scale(x, MARGIN.left, right), py = scale(y, bottom, MARGIN.top);
    element(svg, "title", {}, title);
    const write = (style, x, y, anchor, text, more = {}) =>
      element(svg, "text", { class: style, x, y, "text-anchor": anchor, ...more }, text);
    for (const v of ticksOf(x, width > 420 ? 7 : 5)) {
      element(svg, "line", { class: "grid", x1: px(v), x2: px(v), y1: MARGIN.top, y2: bottom });
      write("tick", px(v), bottom + 16, "middle", tickLabel(v, x.log));
    }
    for (const v of ticksOf(y, 6)) {
      element(svg, "line", { class: v === 0 ? "zero" : "grid", x1: MARGIN.left, x2: right, y1: py(v), y2: py(v) });
      write("tick", MARGIN.left - 6, py(v) + 4, "end", tickLabel(v, y.log));
    }
    write("label", (MARGIN.left + right) / 2, height - 6, "middle", x.label);
    const middle = (MARGIN.top + bottom) / 2;
    write("label", 14, middle, "middle", y.label, { transform: `rotate(-90 14 ${middle})` });
    const id = `clip-${svg.id}`;
    const clip = element(element(svg, "defs"), "clipPath", { id });
    const frame = { x: MARGIN.left, y: MARGIN.top, width: right - MARGIN.left, height: bottom - MARGIN.top };
    element(clip, "rect", frame);
    const inside = element(svg, "g", { "clip-path": `url(#${id})` });
    const place = (points) => points.map(([a, b]) => `${px(a).toFixed(1)},${py(b).toFixed(1)}`);
    const draw = (name, style, points) => element(inside, name, { class: style, points: place(points).join(" ") });
    for (const { points, style } of areas) draw("polygon", style, points);
    for (const { points, style } of lines) draw("polyline", `curve ${style}`, points);
    drawVerticals(svg, verticals.filter((v) => v.x > x.min && v.x < x.max), px, bottom);
    const edge = (v) => Math.min(py(v > 0 || !y.log ? v : y.min), bottom);
    for (const { points, style } of marks) {
      for (const [a, b] of points) drawMark(svg, style, px(a), edge(b));
    }
    for (const { x, y, text, style = "note", anchor = "middle" } of texts) write(style, px(x), py(y), anchor, text);
    element(svg, "rect", { class: "frame", ...frame });
  }

  function drawMark(svg, style, x, y) {
    const triangle = `M${x - 4},${y + 3.5}L${x + 4},${y + 3.5}L${x},${y - 4}Z`;
    if (style === "heated") element(svg, "path", { class: "mark heated", d: triangle });
    else element(svg, "circle", { class: `mark ${style}`, cx: x, cy: y, r: style === "here" ? 7 : 3.2 });
  }

  // Landmarks as vertical lines, the most important first. A label takes the row where it has room; if it
  // has none, the line's style and the table of landmarks tell what it is.
  function drawVerticals(svg, verticals, px, bottom) {
    const taken = [[], []];
    for (const { x, style, label } of verticals) {
      element(svg, "line", { class: `landmark ${style}`, x1: px(x), x2: px(x), y1: MARGIN.top, y2: bottom });
      const half = 3.4 * label.length, free = (others) => others.every(([at, h]) => Math.abs(px(x) - at) >= half + h);
      const row = taken.findIndex(free);
      if (row < 0) continue;
      taken[row].push([px(x), half]);
      const place = { class: "tick", x: px(x), y: MARGIN.top - (row ? 18 : 5), "text-anchor": "middle" };
      element(svg, "text", place, label);
    }
  }

  Object.assign(L0, { drawPlot, logAxis });
}
