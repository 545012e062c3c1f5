// Reads a head (one line of JSON), a module and a memory, calls a function of the module, and writes the memory back.
import fs from "node:fs";

const functions = { fmod: (x, y) => x % y, fmodf: (x, y) => x % y };
for (const name of Object.getOwnPropertyNames(Math)) functions[name] = functions[name + "f"] = Math[name];
functions.pow = (x, y) => (x === 1 || (x === -1 && Math.abs(y) === Infinity) ? 1 : x ** y); // as in C, not in JavaScript

let kept = Buffer.alloc(0);
function more() {
  const part = Buffer.alloc(1 << 20);
  for (;;) {
    try {
      const count = fs.readSync(0, part);
      if (!count) process.exit(0);
      kept = Buffer.concat([kept, part.subarray(0, count)]);
      return;
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}
function take(count) {
  while (kept.length < count) more();
  const taken = kept.subarray(0, count);
  kept = kept.subarray(count);
  return taken;
}
function line() {
  while (!kept.includes(10)) more();
  return take(kept.indexOf(10) + 1).toString();
}
function write(data) {
  for (let done = 0; done < data.length; ) {
    try {
      done += fs.writeSync(1, data, done);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}

for (;;) {
  const head = JSON.parse(line());
  const code = take(head.module), given = take(head.memory);
  try {
    const memory = new WebAssembly.Memory({ initial: Math.ceil(head.memory / 65536) + 1 });
    const bytes = new Uint8Array(memory.buffer);
    bytes.set(given);
    const instance = new WebAssembly.Instance(new WebAssembly.Module(code), { env: { memory, ...functions } });
    instance.exports[head.name](head.table);
    write(Buffer.from("{}\n"));
    write(bytes.subarray(0, head.memory));
  } catch (error) {
    write(Buffer.from(JSON.stringify({ error: String(error) }) + "\n"));
  }
}
