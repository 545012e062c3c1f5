// Runs Python in Pyodide: reads lines of JSON, each a piece of code, and answers each with a line of JSON.
const fs = require("fs");
const path = require("path");
const readline = require("readline");

const [folder, numpy, minigrad] = process.argv.slice(2);
const answer = (value) => fs.writeSync(1, JSON.stringify(value) + "\n");

(async () => {
  const { loadPyodide } = require(path.join(folder, "pyodide.js"));
  const printed = [];
  const write = (text) => { printed.push(text); };
  const python = await loadPyodide({
    indexURL: folder, lockFileURL: path.join(__dirname, "..", "..", "lectures", "site", "browser", "pyodide-lock.json"),
    stdout: write, stderr: write,
  });
  for (const file of [numpy, minigrad]) {
    const site = python.runPython("import sysconfig; sysconfig.get_paths()['purelib']");
    python.unpackArchive(new Uint8Array(fs.readFileSync(file)), "zip", { extractDir: site });
  }
  answer({ printed: "", error: null });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    printed.length = 0;
    let error = null;
    try {
      await python.runPythonAsync(JSON.parse(line));
    } catch (thrown) {
      error = String(thrown.message || thrown);
    }
    answer({ printed: printed.map((each) => each + "\n").join(""), error });
  }
})().catch((error) => {
  answer({ printed: "", error: `Pyodide did not start: ${error.stack || error}` });
  process.exit(1);
});
