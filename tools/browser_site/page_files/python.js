// Python for a page: downloads the interpreter at the first request, starts a worker, passes
// requests on, and ends the worker.

export class Stopped extends Error {}

export class Python {
  // place: the address of the folder with the page's files
  // step: the key of the step to open; null for a page of one program
  // told: is called with {state, done, total}; state is one of the words below
  constructor(place, step, told) {
    this.place = place;
    this.step = step;
    this.told = told;
    this.files = null; // the promise of a Map of names and Blobs, kept for the next start
    this.turn = 0; // counts the ends: a start from before an end goes no further
    this.worker = null;
    this.starting = null;
    this.open = null; // the request under way
  }

  // Sends a request. heard gets each event. The promise ends with the last event; it fails with
  // Stopped if the worker was ended.
  async ask(request, heard = () => {}) {
    await this.start();
    if (this.open) throw new Error("Python is at work already");
    return this.send(request, heard);
  }

  start() {
    const turn = this.turn;
    this.starting ??= this.begin(turn).catch((error) => {
      if (turn === this.turn) {
        this.end();
        this.told({ state: "failed", error });
      }
      throw error;
    });
    return this.starting;
  }

  async begin(turn) {
    this.files ??= this.download().catch((error) => {
      this.files = null;
      throw error;
    });
    const files = await this.files;
    if (turn !== this.turn) throw new Stopped("stopped");
    this.told({ state: "starting" });
    this.worker = new Worker(workerUnderPolicy(new URL("worker.js", this.place)));
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.worker.onerror = (event) => this.hear({ event: "crash", text: event.message });
    await this.send({ interpreter: files, place: new URL("python/", this.place).href });
    if (this.step !== null) await this.send({ do: "open", step: this.step });
    this.told({ state: "ready" });
  }

  async download() {
    const folder = new URL("python/", this.place);
    const answer = await fetch(new URL("files.json", folder));
    if (!answer.ok) throw new Error(`the list of files: ${answer.status}`);
    const sizes = await answer.json();
    const total = Object.values(sizes).reduce((sum, size) => sum + size, 0);
    const arrived = new Map();
    const count = (name, bytes) => {
      arrived.set(name, Math.min(bytes, sizes[name]));
      const done = [...arrived.values()].reduce((sum, size) => sum + size, 0);
      if (this.starting) this.told({ state: "downloading", done, total });
    };
    const names = Object.keys(sizes);
    const blobs = await Promise.all(names.map((name) => fetched(folder, name, count)));
    return new Map(names.map((name, i) => [name, blobs[i]]));
  }

  send(request, heard = () => {}) {
    return new Promise((resolve, reject) => {
      this.open = { resolve, reject, heard };
      this.worker.postMessage(request);
    });
  }

  hear(event) {
    const open = this.open;
    if (!open) return;
    if (event.event === "done" || event.event === "ready") {
      this.open = null;
      open.resolve();
    } else if (event.event === "crash") {
      this.end();
      open.reject(new Error(event.text));
      this.told({ state: "crashed" });
    } else {
      open.heard(event);
    }
  }

  // Ends the worker; the next request starts another one.
  stop() {
    const open = this.open;
    this.end();
    if (open) open.reject(new Stopped("stopped"));
    this.told({ state: "stopped" });
  }

  end() {
    this.turn += 1;
    this.worker?.terminate();
    this.worker = null;
    this.starting = null;
    this.open = null;
  }
}

// A worker from a file has no policy of a plain server; a worker made of a Blob has the page's.
function workerUnderPolicy(script) {
  const text = `importScripts(${JSON.stringify(script.href)});`;
  return URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
}

async function fetched(folder, name, count) {
  const answer = await fetch(new URL(name, folder));
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  const parts = [];
  let bytes = 0;
  const reader = answer.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Blob(parts);
    parts.push(value);
    bytes += value.length;
    count(name, bytes);
  }
}
