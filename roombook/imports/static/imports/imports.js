/* Shows how far the check or the import of a file is, and then its outcome.

   The server answers with a line of JSON for each step ({done, of, what}); the last line has the
   page's new content ({html}). */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const work = document.getElementById("imports-work");
  const blank = document.getElementById("imports-progress");
  let busy = false;

  const waiting = (heading) => {
    const card = blank.content.cloneNode(true);
    card.querySelector("h2").textContent = heading;
    work.replaceChildren(card);
  };

  const tell = (news) => {
    if (news.html !== undefined) {
      work.innerHTML = news.html;
      return;
    }
    const bar = work.querySelector("progress");
    if (!bar) return;
    bar.max = news.of;
    bar.value = news.done;
    const told = `${news.done.toLocaleString("en")} of ${news.of.toLocaleString("en")} ${news.what}`;
    work.querySelector(".imports-progress span").textContent = told;
  };

  const run = async (address, options) => {
    busy = true;
    try {
      const answer = await fetch(address, { ...options, headers: { "X-Requested-With": "fetch" } });
      if (!answer.ok || answer.redirected) throw new Error(`${answer.status}`);
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines) tell(JSON.parse(line));
      }
      // Without its last line nobody knows what became of it.
      if (work.querySelector("progress")) throw new Error("cut short");
    } catch {
      const words = document.createElement("p");
      words.className = "imports-why";
      words.textContent =
        "The connection was lost. Reload the page: it tells what is still to be imported.";
      work.replaceChildren(words);
    }
    busy = false;
  };

  // The theme's own scripts do not follow forms of this page.
  work.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-imports-write]");
    if (!form || busy) return;
    event.preventDefault();
    const body = new FormData(form);
    waiting("Importing");
    run(form.action, { method: "POST", body });
  });

  window.addEventListener("beforeunload", (event) => {
    if (busy) event.preventDefault();
  });

  run(work.dataset.check, {});
});
