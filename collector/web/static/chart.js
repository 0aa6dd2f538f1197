// Replaces the charts of the server by ones that show values under the pointer and can be zoomed.
"use strict";

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function timeText(at, hasDays) {
  const text = new Date(at * 1000).toISOString();
  return hasDays ? text.slice(5, 16).replace("T", " ") : text.slice(11, 19);
}

function options(data, width) {
  const times = data.columns[0];
  const hasDays = times[times.length - 1] - times[0] >= 86400;
  const muted = colour("--muted"), line = colour("--line"), main = colour("--chart");
  const axis = { stroke: muted, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const value = (_, number) => (number === null ? "–" : String(Number(number.toPrecision(3))));
  return {
    width, height: 240, tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "UTC"),
    scales: { y: { range: data.range } },
    axes: [
      { ...axis, space: hasDays ? 90 : 70, incrs: [1, 5, 15, 60, 300, 900, 3600, 14400, 86400, 604800],
        values: (_, ticks) => ticks.map((at) => timeText(at, hasDays)) },
      { ...axis, size: 60, values: (_, ticks) => ticks.map((tick) => value(_, tick)) },
    ],
    bands: [{ series: [3, 2], fill: colour("--band") }],
    series: [
      { label: "Time (UTC)", value: (_, at) => (at === null ? "–" : timeText(at, true) + timeText(at, false).slice(5)) },
      { label: "mean", stroke: main, width: 2, points: { show: true, size: 5, fill: main }, value },
      { label: "95 % from", stroke: "transparent", points: { show: false }, value },
      { label: "to", stroke: "transparent", points: { show: false }, value },
    ],
    hooks: { draw: [(plot) => drawMarks(plot, data, muted)] },
  };
}

function drawMarks(plot, data, muted) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = muted;
  ctx.lineWidth = devicePixelRatio;
  ctx.font = `${11 * devicePixelRatio}px sans-serif`;
  const path = (from, to) => { ctx.beginPath(); ctx.moveTo(...from); ctx.lineTo(...to); ctx.stroke(); };
  data.versions.forEach(([at, name], index) => {
    const x = plot.valToPos(at, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) return;
    path([x, bbox.top], [x, bbox.top + bbox.height]);
    const isRight = x > bbox.left + 0.8 * bbox.width;
    ctx.textAlign = isRight ? "right" : "left";
    const y = bbox.top + (12 + 14 * (index % 3)) * devicePixelRatio;
    ctx.fillText(name.slice(0, 20), x + (isRight ? -4 : 4) * devicePixelRatio, y);
  });
  if (data.threshold !== null) {
    const y = plot.valToPos(data.threshold, "y", true);
    ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    path([bbox.left, y], [bbox.left + bbox.width, y]);
  }
  ctx.restore();
}

function draw(place) {
  const data = JSON.parse(place.dataset.chart);
  if (data.columns[0].length < 2) return;  // the server's picture shows a single point as well
  const width = () => Math.max(200, place.clientWidth);
  const size = width();
  place.replaceChildren();
  let plot = new uPlot(options(data, size), data.columns, place);
  new ResizeObserver(() => plot.setSize({ width: width(), height: 240 })).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    plot.destroy();
    plot = new uPlot(options(data, width()), data.columns, place);
  });
}

for (const place of document.querySelectorAll("[data-chart]")) draw(place);
