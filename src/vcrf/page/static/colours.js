// A colour for each label: hues as far from each other as can be, the same for the same list of labels.

export function hues(labels) {
  const found = new Map();
  labels.forEach((label, i) => found.set(label, Math.round((35 + i * 137.508) % 360)));
  return found;
}
