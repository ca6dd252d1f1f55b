/* The time zone of a center, found by its place while one types. A time zone that somebody typed
   stays; it is only told if the place has another. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const latitude = document.querySelector("#id_latitude[data-time-zone-address]");
  const longitude = document.querySelector("#id_longitude");
  const zone = document.querySelector("#id_time_zone_id");
  if (!latitude || !longitude || !zone) return;

  const words = document.createElement("p");
  words.className = "backoffice-quiet place-words";
  words.setAttribute("role", "status");
  zone.after(words);

  let typed = false;
  let timer = null;
  let latest = 0;
  zone.addEventListener("input", () => {
    typed = zone.value !== "";
  });

  const ask = async () => {
    const mine = ++latest;
    const place = new URLSearchParams({ latitude: latitude.value, longitude: longitude.value });
    const answer = await fetch(`${latitude.dataset.timeZoneAddress}?${place}`).catch(() => null);
    if (!answer?.ok || mine !== latest) return;
    const { timeZone, message } = await answer.json();
    words.textContent = message;
    if (!timeZone || timeZone === zone.value) return;
    if (typed) {
      words.textContent = `The place is in ${timeZone}.`;
    } else {
      zone.value = timeZone;
      words.textContent = "Found by the place.";
    }
  };

  const soon = () => {
    clearTimeout(timer);
    if (latitude.value && longitude.value) timer = setTimeout(ask, 300);
  };
  for (const input of [latitude, longitude]) input.addEventListener("input", soon);

  // Maps give both in one: 39.7433, -104.9903.
  latitude.addEventListener("paste", (event) => {
    const both = event.clipboardData.getData("text").match(/^\s*(-?[\d.]+)[,;\s]+(-?[\d.]+)\s*$/);
    if (!both) return;
    event.preventDefault();
    [latitude.value, longitude.value] = both.slice(1);
    soon();
  });
});
