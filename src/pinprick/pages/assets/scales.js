// Scales from values to positions, with ticks.

// A scale with 0 and equal distances between equal ratios above 1: x -> log(1 + x).
export function logScale(most, from, to) {
  const end = Math.log1p(Math.max(1, most));
  const place = (value) => from + ((to - from) * Math.log1p(value)) / end;
  place.invert = (at) => Math.expm1(((at - from) / (to - from)) * end);
  place.ticks = decades(most, Math.abs(to - from));
  return place;
}

export function linearScale(most, from, to) {
  const place = (value) => from + ((to - from) * value) / most;
  place.invert = (at) => ((at - from) / (to - from)) * most;
  const step = niceStep(most, Math.max(2, Math.abs(to - from) / 55));
  place.ticks = [];
  for (let tick = 0; tick <= most * 1.0001; tick += step) place.ticks.push(Number(tick.toPrecision(6)));
  return place;
}

function decades(most, room) {
  const ticks = [0];
  const inner = room / Math.log10(most + 2) > 150 ? [1, 2, 5] : [1];
  for (let decade = 1; decade <= most; decade *= 10) {
    for (const part of inner) if (decade * part <= most) ticks.push(decade * part);
  }
  return ticks;
}

function niceStep(most, count) {
  const raw = most / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * [1, 2, 5, 10].find((part) => part * power >= raw);
}
