// Numbers as people read them.

const INFINITE = "∞";

export function percentText(share) {
  if (share === null || share === undefined) return "–";
  return share === 0 || share === 1 ? `${100 * share} %` : `${(100 * share).toFixed(1)} %`;
}

// A count; null stands for infinity.
export function countText(value) {
  if (value === null || value === undefined) return INFINITE;
  const rounded = Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3));
  return rounded.toLocaleString("en");
}

export function shortCount(value) {
  if (value >= 1e6) return `${Number((value / 1e6).toPrecision(2))}M`;
  if (value >= 1e4) return `${Number((value / 1e3).toPrecision(2))}k`;
  return value.toLocaleString("en");
}

export function plural(count, unit) {
  return `${countText(count)} ${unit}${count === 1 ? "" : "s"}`;
}
