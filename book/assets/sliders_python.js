/* Python in the page: what the page of sliders and the figures that move share.
 *
 * Python is Pyodide, its core served beside this file as scripts that hand over text, because a page opened from disk may
 * load scripts and nothing else.  Nothing is loaded before somebody asks. */
"use strict";

const flamelibSliders = (() => {
  const BASE = new URL("sliders/", document.currentScript.src).href;
  const received = {};
  const scripts = {};
  let started = null;

  const script = (name) =>
    (scripts[name] ??= new Promise((done, failed) => {
      const element = document.createElement("script");
      element.src = BASE + name;
      element.onload = done;
      element.onerror = () => failed(new Error(`${name} is not beside this page`));
      document.head.append(element);
    }));

  /** What a script of the build hands over. */
  async function told(name) {
    await script(`${name}.js`);
    return received[name];
  }

  async function plain(name) {
    const packed = await fetch(`data:application/octet-stream;base64,${received[name]}`);
    delete received[name];
    return new Response(packed.body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  }

  const unpacked = async (name, type) => URL.createObjectURL(new Blob([await plain(name)], { type }));

  async function begin(runtime) {
    if (!runtime) throw new Error("This book was built where the Python runtime for browsers could not be had.");
    await Promise.all(["flamelib.js", "pyodide.js", ...runtime.parts.map((name) => `${name}.js`)].map(script));
    const [snapshot, wasm, module, library] = await Promise.all([
      runtime.parts.includes("snapshot") ? plain("snapshot") : null,
      unpacked("pyodide.asm.wasm", "application/wasm"),
      unpacked("pyodide.asm.mjs", "text/javascript"),
      unpacked("python_stdlib.zip", "application/zip"),
    ]);
    const createPyodideModule = (await import(module)).default;
    const load = (memory) =>
      loadPyodide({
        indexURL: `${wasm}#/`, // the loader appends the file's name, which a fragment makes harmless
        stdLibURL: library,
        lockFileContents: runtime.lock,
        packageBaseUrl: "data:,",
        createPyodideModule,
        ...memory,
      });
    // The memory of an interpreter that has started saves most of the start; without it, the long way.
    const interpreter = await (snapshot ? load({ _loadSnapshot: snapshot }).catch(() => load({})) : load({}));
    [wasm, module, library].forEach(URL.revokeObjectURL);
    for (const [path, source] of Object.entries(received.flamelib)) {
      interpreter.FS.mkdirTree(`/library/${path.slice(0, path.lastIndexOf("/"))}`);
      interpreter.FS.writeFile(`/library/${path}`, source);
    }
    interpreter.runPython("import sys; sys.path[:0] = ['/library', '/library/book']");
    const python = interpreter.pyimport("flamebook.site.sliders.figures");
    return (message) => JSON.parse(python.respond(JSON.stringify(message)));
  }

  /** A function that puts a message to the library; one interpreter for the whole page. */
  const start = (runtime) => (started ??= begin(runtime));

  const number = (text) => (text.trim() === "" ? NaN : Number(text));

  /** Three digits; a whole number where the parameter is one. */
  const tidy = (whole, value) => (whole ? Math.round(Number(value.toPrecision(3))) : Number(value.toPrecision(3)));

  /** Digits a person reads and Python and Number parse alike. */
  const written = (value) => (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e7) ? value.toExponential().replace("e+", "e") : String(value));

  return { receive: (name, content) => (received[name] = content), told, start, number, tidy, written };
})();
