// The learner's progress: as a file to keep or to carry to another browser, and licences.

import { button, element } from "./elements.js";
import { exported, forgetAll, imported } from "./store.js";

export function progressPanel(place) {
  const words = element("p", { role: "status" });
  const save = button("Save as a file", () => {
    const address = URL.createObjectURL(new Blob([exported()], { type: "application/json" }));
    element("a", { href: address, download: "tinynode-course-progress.json" }).click();
    URL.revokeObjectURL(address);
  });
  const chooser = element("input", {
    type: "file",
    accept: ".json,application/json",
    "aria-label": "A file with saved progress",
    hidden: true,
    change: async () => {
      const [file] = chooser.files;
      if (!file) return;
      try {
        const count = imported(await file.text());
        words.textContent = `Read ${count} entries. The page loads again.`;
        setTimeout(() => location.reload(), 300);
      } catch (error) {
        words.textContent = error.message;
      }
      chooser.value = "";
    },
  });
  const load = button("Load a file", () => chooser.click());
  const forget = button("Forget all", () => {
    if (!confirm("Forget all edited cells, files and passed checks in this browser?")) return;
    forgetAll();
    location.reload();
  });
  const licences = element("a", { href: new URL("licences.html", place) }, "licences");
  const summary = element("summary", {}, "Your progress, and what runs here");
  return element(
    "details",
    { class: "tn-panel" },
    summary,
    element(
      "p",
      {},
      "Edited cells, files of exercises and passed checks stay in this browser. Nothing is sent.",
    ),
    element("div", { class: "tn-buttons" }, save, load, forget, chooser),
    words,
    element(
      "p",
      {},
      "Python runs in this page: CPython by Pyodide (MPL-2.0) and NumPy (BSD-3-Clause), from " +
        "this site. See their ",
      licences,
      ".",
    ),
  );
}
