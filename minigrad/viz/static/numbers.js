// Numbers as Python writes them (numbers.py): in one line, as a corner, as the letters of a heat map.

const LINE = 0, SHORT = 1, CELLS = 2, TABLE = 3; // what is stored of a value

// Three digits that matter.  A tie goes to the even digit, as in Python.
const short = (x) => {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "nan" : x < 0 ? "−inf" : "inf";
  const even = /^(-?\d\.\d[02468])50*e(.*)$/.exec(x.toExponential(60));
  const [digits, power] = (even ? even.slice(1) : x.toExponential(2).split("e")).map(Number);
  const text = power < -4 || power >= 3 ? `${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}` : String(+`${digits}e${power}`);
  return (x === 0 ? "0" : text).replaceAll("-", "−");
};
const written = (x, kind) => (kind === "bool" ? (x ? "True" : "False") : kind.includes("int") ? String(x) : short(x));
const few = (values, shape, kind) => {
  const words = Array.from(values, (x) => written(x, kind));
  return shape.length ? `[${words.join(", ")}]` : words[0];
};

// The shape and the dtype that a type is written with, such as "64 × 10  float64".
const typeIn = (text) => {
  const [shape, kind = ""] = text.split("  ");
  return [(shape.match(/\d+/g) ?? []).map(Number), kind];
};

const shadeOf = (share) => { // the letter of one square
  const level = Math.min(7, Math.ceil(Math.abs(share) * 7 - 0.5));
  return !Number.isFinite(share) ? "!" : level <= 0 ? "." : String.fromCharCode((share > 0 ? 64 : 96) + level);
};
const lettersOf = (rows) => {
  const most = Math.max(...rows.flat().map(Math.abs).filter(Number.isFinite), 0) || 1;
  return rows.map((row) => row.map((x) => shadeOf(x / most)).join(""));
};

// The heat map of a tensor: each square shows the mean of some rows and columns; of four axes, three matrices are seen.
const cellsOf = (values, shape) => {
  if (!shape.length || values.length < 2) return "";
  const wide = shape.at(-1), high = shape.length > 1 ? shape.at(-2) : 1, deep = shape.length > 3 && Math.min(high, wide) > 1;
  const count = deep ? Math.min(3, values.length / (high * wide)) : 1, tall = count > 1 ? high : values.length / wide;
  const cuts = (n, most, parts = Math.min(n, most)) => Array.from({ length: parts }, (_, i) => [i, i + 1].map(
    (at) => at * Math.floor(n / parts) + Math.min(at, n % parts)));
  const rows = cuts(tall, deep ? 8 : 6), columns = cuts(wide, deep ? 8 : 10);
  const mean = (tile, [a, b], [c, d]) => {
    let total = 0;
    for (let i = a; i < b; i += 1) for (let j = c; j < d; j += 1) total += values[(tile * tall + i) * wide + j];
    return total / ((b - a) * (d - c));
  };
  const tiles = Array.from({ length: count }, (_, tile) => rows.map((row) => columns.map((column) => mean(tile, row, column))));
  const lines = lettersOf(tiles.flat());
  return rows.map((_, row) => tiles.map((_, tile) => lines[tile * rows.length + row]).join(" ")).join("/");
};

const cornerOf = (values, shape, kind) => {
  if (!shape.length || values.length < 2) return "";
  const wide = shape.at(-1), tall = shape.length > 1 ? shape.at(-2) : 1, dots = wide > 4 ? ["…"] : [];
  const rows = Array.from({ length: Math.min(4, tall) }, (_, i) => [...Array.from(values.slice(i * wide, i * wide + Math.min(4 - dots.length, wide)), (x) => written(x, kind)), ...dots]);
  if (tall > 4 || values.length > tall * wide) rows.push(rows[0].map(() => "…"));
  return rows.map((row) => row.join(" ")).join("\n");
};

const summaryOf = (values, shape, kind) => {
  const finite = values.filter((x) => Number.isFinite(x)), nans = values.filter((x) => Number.isNaN(x)).length;
  const strange = [[nans, "nan"], [values.length - finite.length - nans, "inf"]].filter(([count]) => count);
  const warning = shape.length && strange.length ? `  ${strange.map((each) => each.join(" ")).join(", ")}` : "";
  const inside = !values.length ? "no numbers" : values.length <= 4 ? few(values, shape, kind)
    : finite.length ? `${short(Math.min(...finite))} … ${short(Math.max(...finite))}` : "nothing finite";
  const line = values.length <= 4 ? inside : shape.length > 1 ? shape.join(" × ") : `(${shape},)`;
  return [line + warning, inside + warning, cellsOf(values, shape), cornerOf(values, shape, kind)];
};
