// Starts Pyodide, in JupyterLite's worker.  A server that sends WebAssembly with a different type than application/wasm
// would stop it: browsers compile only that type while it comes in.  Anything else is compiled afterwards.
const streaming = WebAssembly.instantiateStreaming;
WebAssembly.instantiateStreaming = async (source, imports) => {
  const response = await source;
  const right = response.headers.get("Content-Type")?.startsWith("application/wasm");
  return right ? streaming(response, imports) : WebAssembly.instantiate(await response.arrayBuffer(), imports);
};
importScripts(new URL("../../../../static/pyodide/pyodide.js", location));
