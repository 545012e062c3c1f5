// The tape of a backward pass, computed in the page (see live.py): data are looked up in tables, nothing is evaluated as code.

const erf = (x) => { // its series whose terms are all positive
  const a = Math.abs(x);
  if (!(a < 6)) return a >= 6 ? Math.sign(x) : x;
  let sum = a;
  for (let n = 1, term = a; n < 200; n += 1) { term *= 2 * a * a / (2 * n + 1); sum += term; }
  return Math.sign(x) * sum * Math.exp(-a * a) * 2 / Math.sqrt(Math.PI);
};
const rint = (x) => { const near = Math.round(x); return Math.abs(x % 1) === 0.5 && near % 2 ? near - 1 : near; };
const FUNCTIONS = new Map(Object.entries({
  where: (c, a, b) => (c ? a : b), "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b,
  "//": (a, b) => Math.floor(a / b), "%": (a, b) => a - b * Math.floor(a / b), "-x": (a) => -a, "~": (a) => +!a,
  "<": (a, b) => +(a < b), "<=": (a, b) => +(a <= b), "==": (a, b) => +(a === b), "&": (a, b) => a & b, "|": (a, b) => a | b,
  "^": (a, b) => a ^ b, pow: (a, b) => (a === 1 || b === 0 ? 1 : a ** b), max: (a, b) => Math.max(a, b), min: (a, b) => Math.min(a, b),
  erf, rint, cast: (a) => a, bool: (a) => +(a !== 0),
}));
for (const name of "abs atan2 cos sin exp expm1 log log1p sqrt tanh floor trunc".split(" ")) FUNCTIONS.set(name, Math[name]);
const EMPTY = { "+": 0, "*": 1, max: -Infinity, min: Infinity };

// Runs of integers, as `live.runs` writes them.
const placesOf = (runs) => {
  const found = [];
  for (let i = 0; i < runs.length; i += 3) for (let k = 0; k < runs[i + 2]; k += 1) found.push(runs[i] + k * runs[i + 1]);
  return found;
};

// From the numbers of the leaves to the arrays of registers, by `count` instructions; short operands are repeated.
const tapeOf = ({ constants, code, single }) => {
  const places = code.map((line) => placesOf(line.find(Array.isArray) ?? []));
  const Kind = single ? Float32Array : Float64Array;
  const known = constants.map((list) => Kind.from(list, Number));
  const does = {
    take: (at, out, where, _, ...sources) => {
      const table = sources.length === 1 ? at(sources[0]) : sources.flatMap((r) => Array.from(at(r)));
      return out(where.length, (i) => table[where[i]]);
    },
    fold: (at, out, where, name, size, _, source) => {
      const made = out(size, () => EMPTY[name]), f = FUNCTIONS.get(name), x = at(source);
      where.forEach((place, i) => { made[place] = f(made[place], x[i % x.length]); });
      return made;
    },
    "@": (at, out, where, stack, m, k, n, left, right) => {
      const [a, b] = [at(left), at(right)];
      return out(stack * m * n, (i) => {
        const j = i % n, row = (i - j) / n, from = (row * k) % a.length, into = (Math.floor(row / m) * k * n) % b.length + j;
        let sum = 0;
        for (let l = 0; l < k; l += 1) sum += a[from + l] * b[into + l * n];
        return sum;
      });
    },
  };
  return (leaves, count = code.length) => {
    const made = leaves.map((x) => Kind.from(x));
    const at = (r) => (r < 0 ? known[-1 - r] : made[r]);
    const out = (size, f) => { const x = new Kind(size); for (let i = 0; i < size; i += 1) x[i] = f(i); return x; };
    code.slice(0, count).forEach(([name, ...rest], i) => {
      if (Object.hasOwn(does, name)) { made.push(does[name](at, out, places[i], ...rest)); return; }
      const f = FUNCTIONS.get(name), [a, b = [0], c = [0]] = rest.map(at), sizes = [a, b, c].map((x) => x.length);
      made.push(out(sizes.includes(0) ? 0 : Math.max(...sizes), (k) => f(a[k % sizes[0]], b[k % sizes[1]], c[k % sizes[2]])));
    });
    return at;
  };
};
