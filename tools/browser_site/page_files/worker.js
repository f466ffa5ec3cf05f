// Python, in a worker of the page: an endless loop there does not stop the page, and the page can
// end the worker. The first message has the interpreter's files; each further message is a request
// to tinynode_course.page_session. No file comes from elsewhere: fetch gives the files alone.
"use strict";

const TYPES = { wasm: "application/wasm", json: "application/json" };
const PACKAGES = "/lib/python3.11/site-packages";
const START = `
import sys
from pathlib import Path
from page import send
sys.dont_write_bytecode = False  # films and checks import tinynode anew, without compiling
import tinynode
from tinynode.commands import step
from tinynode_course import checks, examiner
from tinynode_course.page_session import PageSession
sys.dont_write_bytecode = True  # the learner's files change within a second
PageSession(Path("/home/learner"), send)
`;

let session = null;

const tell = (event) => postMessage(event);

async function unpacked(name, blob) {
  const start = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  // a server may have said that the file is compressed; the browser has then opened it
  const isPacked = name.endsWith(".gz") && start[0] === 0x1f && start[1] === 0x8b;
  const stream = blob.stream();
  const opened = isPacked ? stream.pipeThrough(new DecompressionStream("gzip")) : stream;
  return new Response(opened).arrayBuffer();
}

async function start(packed, indexURL) {
  const files = new Map();
  for (const [name, blob] of packed) {
    files.set(name.replace(/\.gz$/, ""), await unpacked(name, blob));
  }
  self.fetch = async (address) => {
    const name = new URL(address, indexURL).pathname.split("/").pop();
    const type = TYPES[name.split(".").pop()] ?? "application/octet-stream";
    const content = files.get(name) ?? null;
    return new Response(content, {
      status: content === null ? 404 : 200,
      headers: { "Content-Type": type },
    });
  };
  for (const name of ["pyodide.js", "pyodide.asm.js"]) {
    importScripts(URL.createObjectURL(new Blob([files.get(name)], { type: "text/javascript" })));
  }
  const print = (text) => tell({ event: "printed", text: text + "\n" });
  const pyodide = await loadPyodide({ indexURL, stdout: print, stderr: print });
  pyodide.unpackArchive(files.get("numpy.zip"), "zip", { extractDir: PACKAGES });
  pyodide.unpackArchive(files.get("tinynode.zip"), "zip", { extractDir: PACKAGES });
  pyodide.FS.writeFile("/lib/backtrace.so", new Uint8Array(files.get("backtrace.so")));
  // private: the versions are fixed
  await pyodide._api.loadDynlib("/lib/backtrace.so", true, []);
  pyodide.registerJsModule("page", { send: (text) => tell(JSON.parse(text)) });
  session = pyodide.runPython(START);
  tell({ event: "ready" });
}

self.onmessage = async ({ data }) => {
  try {
    if (data.interpreter) await start(data.interpreter, data.place);
    else session.answer(JSON.stringify(data));
  } catch (error) {
    tell({ event: "crash", text: String(error?.message ?? error) });
  }
};
