/* Previews: shows what a form would do while it is edited.

   <form data-live="ADDRESS" data-live-into="#id"> is posted to ADDRESS shortly after each change; the
   response, an HTML fragment, replaces the content of the element. The latest edit wins. If the
   form is the theme's own, the element names it: <div data-live="ADDRESS" data-live-from="#form">.
   A script that adds such forms dispatches the event "live:added" on the element around them. */
"use strict";

// The second click of a double click sends nothing: its answer would hide that of the first one, and
// say that nothing was done.
const sent = new WeakSet();
document.addEventListener(
  "submit",
  (event) => {
    const form = event.target;
    if (form.getAttribute("method") !== "post") return;
    if (sent.has(form)) {
      event.preventDefault();
      return event.stopImmediatePropagation();
    }
    sent.add(form);
    // A script may send the form, or refuse it. The back button may show this page again.
    const release = () => sent.delete(form);
    setTimeout(() => (event.defaultPrevented ? release() : setTimeout(release, 10_000)));
  },
  true,
);

// Forms begin in their first field or at their first error, which may be far below.
const FORMS = "form[data-live], .draft-center, form[id$='_form']";
const begin = () => {
  const error = document.querySelector(".errorlist, .errors, .backoffice-error");
  if (error) return error.scrollIntoView({ block: "center" });
  const isNew = location.pathname.endsWith("/add/") || location.pathname.includes("/step/");
  if (!isNew || document.activeElement !== document.body) return;
  for (const field of document.querySelector(FORMS)?.elements ?? []) {
    // A select that select2 replaces cannot have the focus itself.
    const isReplaced = field.matches(".select2-hidden-accessible");
    const target = isReplaced ? field.nextElementSibling.querySelector(".select2-selection") : field;
    const isEntered = target.matches("input, select, textarea, .select2-selection");
    if (isEntered && !field.disabled && target.checkVisibility()) return target.focus();
  }
};
// By a timer, because select2 replaces its fields by one that may still wait.
window.addEventListener("load", () => setTimeout(begin));

document.addEventListener("click", async ({ target }) => {
  const field = document.getElementById(target.dataset?.copy);
  if (!field) return;
  field.select();
  await navigator.clipboard?.writeText(field.value);
  target.textContent = "Copied";
});

document.addEventListener("DOMContentLoaded", () => {
  const follow = (form, address, into, atOnce) => {
    let timer = null;
    let latest = null;

    const read = () =>
      JSON.stringify([...new FormData(form)].map(([name, value]) => [name, value.name ?? value]));
    let shown = read();

    const show = async () => {
      latest?.abort();
      shown = read();
      const current = (latest = new AbortController());
      into.setAttribute("aria-busy", "true");
      try {
        const answer = await fetch(address, {
          method: "POST",
          body: new FormData(form),
          headers: { "X-Requested-With": "fetch" },
          signal: current.signal,
          redirect: "manual",
        });
        if (answer.status === 401) {
          into.textContent = "You are signed out. Send the form: what you entered is kept.";
        } else if (answer.type === "opaqueredirect") {
          into.textContent = "It has changed meanwhile. Open the page again.";
        } else if (answer.ok) {
          into.innerHTML = await answer.text();
        } else throw new Error(`${answer.status}`);
      } catch (error) {
        if (error.name === "AbortError") return;
        into.textContent = "The preview could not be loaded.";
      }
      if (latest === current) into.removeAttribute("aria-busy");
    };

    const soon = () => {
      // To leave a field reports a change that the preview may show already.
      if (read() === shown) return;
      // What the preview's own buttons would confirm is out of date.
      for (const button of into.querySelectorAll("button[type=submit]")) button.disabled = true;
      clearTimeout(timer);
      timer = setTimeout(show, 250);
    };

    form.addEventListener("input", soon);
    form.addEventListener("change", soon);
    // Autocomplete widgets report changes through jQuery only.
    window.django?.jQuery?.(form).on("change", "select", soon);
    if (atOnce) show();
  };

  const attach = (root) => {
    for (const form of root.querySelectorAll("form[data-live]")) {
      const into = document.querySelector(form.dataset.liveInto);
      follow(form, form.dataset.live, into, form.hasAttribute("data-live-now"));
    }
  };

  attach(document);
  document.addEventListener("live:added", (event) => attach(event.target));
  for (const into of document.querySelectorAll("[data-live-from]")) {
    const form = document.querySelector(into.dataset.liveFrom);
    if (form) follow(form, into.dataset.live, into, into.hasAttribute("data-live-now"));
  }
});
