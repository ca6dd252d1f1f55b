/* The rates of a room or a service follow its center while it is being selected. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const center = document.getElementById("id_center");
  const rate = document.querySelector("select[data-choices-url]");
  if (!center || !rate) return;

  const load = async () => {
    const selected = rate.value;
    const address = new URL(rate.dataset.choicesUrl, window.location);
    address.searchParams.set("center", center.value);
    const answer = await fetch(address);
    if (!answer.ok) return;
    const { choices } = await answer.json();
    const empty = rate.options[0];
    rate.replaceChildren(empty, ...choices.map(([id, name]) => new Option(name, id)));
    rate.value = choices.some(([id]) => `${id}` === selected) ? selected : "";
  };

  // Autocomplete widgets report changes through jQuery only.
  window.django.jQuery(center).on("change", load);
});
