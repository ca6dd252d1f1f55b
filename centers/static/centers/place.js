/* Fills in the time zone of a center while its coordinates are entered. A time zone that the user
   entered is kept; a message says if the coordinates are in another one. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const latitude = document.querySelector("#id_latitude[data-time-zone-url]");
  const longitude = document.querySelector("#id_longitude");
  const zone = document.querySelector("#id_time_zone_id");
  if (!latitude || !longitude || !zone) return;

  const message = document.createElement("p");
  message.className = "backoffice-quiet";
  message.setAttribute("role", "status");
  zone.after(message);

  let isEntered = false;
  let timer = null;
  let latest = 0;
  zone.addEventListener("input", () => {
    isEntered = zone.value !== "";
  });

  const load = async () => {
    const current = ++latest;
    const query = new URLSearchParams({ latitude: latitude.value, longitude: longitude.value });
    const response = await fetch(`${latitude.dataset.timeZoneUrl}?${query}`).catch(() => null);
    if (!response?.ok || current !== latest) return;
    const { timeZone, message: text } = await response.json();
    message.textContent = text;
    if (!timeZone || timeZone === zone.value) return;
    if (isEntered) {
      message.textContent = `The coordinates are in the time zone ${timeZone}.`;
    } else {
      zone.value = timeZone;
      message.textContent = "Set from the coordinates.";
    }
  };

  const schedule = () => {
    clearTimeout(timer);
    if (latitude.value && longitude.value) timer = setTimeout(load, 300);
  };
  for (const input of [latitude, longitude]) input.addEventListener("input", schedule);

  // Online maps copy both coordinates as one text: 39.7433, -104.9903.
  latitude.addEventListener("paste", (event) => {
    const pair = event.clipboardData.getData("text").match(/^\s*(-?[\d.]+)[,;\s]+(-?[\d.]+)\s*$/);
    if (!pair) return;
    event.preventDefault();
    [latitude.value, longitude.value] = pair.slice(1);
    for (const input of [latitude, longitude]) input.dispatchEvent(new Event("input"));
  });

  // The theme warns of leaving after an input. Autocomplete widgets report it through jQuery only.
  window.django?.jQuery?.("#id_neighborhood").on("change", (event) => {
    event.target.dispatchEvent(new Event("input"));
  });
});
