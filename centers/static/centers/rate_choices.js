/* The rates and terms of a room or a service follow its center while it is being selected. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const center = document.getElementById("id_center");
  if (!center) return;

  const load = async (select) => {
    const selected = select.value;
    const address = new URL(select.dataset.choicesUrl, window.location);
    address.searchParams.set("center", center.value);
    const answer = await fetch(address);
    if (!answer.ok) return;
    const { choices } = await answer.json();
    const empty = select.options[0];
    select.replaceChildren(empty, ...choices.map(([id, name]) => new Option(name, id)));
    select.value = choices.some(([id]) => `${id}` === selected) ? selected : "";
  };

  // Autocomplete widgets report changes through jQuery only.
  window.django.jQuery(center).on("change", () => {
    document.querySelectorAll("select[data-choices-url]").forEach(load);
  });
});
