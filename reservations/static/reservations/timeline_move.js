/* Moving and resizing bookings on a timeline, and selecting free time, by dragging with a mouse.

   By keyboard, M on a booking starts; the arrow keys change the time and the row, Shift and the
   arrow keys the end; Enter drops and Escape cancels. A finger scrolls instead. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const board = document.querySelector("#timeline-rows");
  const live = document.querySelector("#timeline-live");
  if (!board || !live) return;
  const THRESHOLD = 5; // pixels that a click may move
  const SCROLL_MARGIN = 40; // pixels from the edge of the timeline where dragging scrolls it

  // What is being moved, with its link, or selected, with the minutes where that began (anchor):
  // its track, and the minutes of its ends (first, last).
  let active = null;
  let ghost = null;

  // --- Times: minutes since the start of a track's axis.

  // The local time ("2027-03-03T09:15"), or "" in an hour that the clock shows a second time.
  const getLocalTime = (track, minutes) => {
    const clock = JSON.parse(track.dataset.clock);
    const [from, local] = clock.findLast(([start]) => start <= minutes) ?? clock[0];
    if (!local) return "";
    const at = Date.parse(`${local}:00Z`) + (minutes - from) * 60_000;
    return new Date(at).toISOString().slice(0, 16);
  };

  // Rounds to the time slots of the room, which count from midnight.
  const snap = (track, minutes) => {
    const slot = Number(track.dataset.slotMinutes);
    const [hour, minute] = (getLocalTime(track, 0) || "T00:00").split("T")[1].split(":");
    const offset = (Number(hour) * 60 + Number(minute)) % slot;
    return Math.round((minutes + offset) / slot) * slot - offset;
  };

  const getMinutes = (track, x) => {
    const { left, width } = track.getBoundingClientRect();
    return ((x - left) / width) * Number(track.dataset.minutes);
  };

  // The first time slot that can be booked: nothing moves into the past.
  const getEarliest = (track) => {
    const slot = Number(track.dataset.slotMinutes);
    const earliest = Number(track.dataset.earliest);
    const first = snap(track, earliest);
    return first < earliest ? first + slot : first;
  };

  const limit = (value, low, high) => Math.min(Math.max(value, low), high);

  const findTrack = (x, y) =>
    [...board.querySelectorAll(".timeline-track")].find((track) => {
      const { left, right, top, bottom } = track.getBoundingClientRect();
      return left <= x && x < right && top <= y && y < bottom;
    });

  // --- Showing where it is.

  const draw = () => {
    const { track, first, last } = active;
    const length = Number(track.dataset.minutes);
    const times = [first, last].map((at) => getLocalTime(track, at).slice(11) || "repeated hour");
    ghost ??= Object.assign(document.createElement("div"), { className: "timeline-ghost" });
    ghost.style.left = `${(100 * first) / length}%`;
    ghost.style.width = `${(100 * (last - first)) / length}%`;
    ghost.textContent = times.join(" - ");
    if (ghost.parentNode !== track) track.append(ghost);
    active.link?.classList.add("timeline-booking--moving");
    live.textContent = `${track.dataset.label}, ${times.join(" - ")}`;
  };

  const stop = (text = "") => {
    ghost?.remove();
    ghost = null;
    active?.link?.classList.remove("timeline-booking--moving");
    active = null;
    live.textContent = text;
  };

  // --- Dropping.

  const drop = () => {
    const { link, track, first, last, original } = active;
    const [start, end] = [first, last].map((at) => getLocalTime(track, at));
    if (!start || !end) return stop("The clock shows this hour twice. Choose another time.");
    if (!link) {
      stop();
      return location.assign(`${track.dataset.new}&start=${start}&end=${end}`);
    }
    const isSame =
      track === original.track && first === original.first && last === original.last;
    if (isSame) return stop("Not moved.");
    stop();
    const fields = {
      room: track.dataset.room,
      start_0: start.slice(0, 10),
      start_1: start.slice(11),
      end_0: end.slice(0, 10),
      end_1: end.slice(11),
      expected_version: link.dataset.version,
    };
    document.dispatchEvent(new CustomEvent("timeline:drop", { detail: { link, fields } }));
  };

  const begin = (link, edge) => {
    const [first, last] = [Number(link.dataset.first), Number(link.dataset.last)];
    const track = link.closest(".timeline-track");
    return { link, edge, track, first, last, original: { track, first, last } };
  };

  // --- By mouse.

  const dragTo = (x, y) => {
    const { edge, original, anchor, grip } = active;
    if (anchor !== undefined) {
      const slot = Number(active.track.dataset.slotMinutes);
      const other = snap(active.track, getMinutes(active.track, x));
      active.first = Math.max(getEarliest(active.track), Math.min(anchor, other));
      active.last = Math.max(anchor, other, active.first + slot);
    } else if (edge) {
      const at = snap(active.track, getMinutes(active.track, x));
      const slot = Number(active.track.dataset.slotMinutes);
      if (edge === "start") active.first = limit(at, getEarliest(active.track), original.last - slot);
      else active.last = Math.max(at, original.first + slot);
    } else {
      const track = (active.track = findTrack(x, y) ?? active.track);
      const duration = original.last - original.first;
      const first = snap(track, getMinutes(track, x) - grip);
      active.first = limit(first, getEarliest(track), Number(track.dataset.minutes) - duration);
      active.last = active.first + duration;
    }
    active.last = Math.min(active.last, Number(active.track.dataset.minutes));
    draw();
  };

  const scrollAlong = (x, y) => {
    const timeline = board.querySelector(".timeline");
    const { left, right, top, bottom } = timeline.getBoundingClientRect();
    const step = (at, low, high) =>
      at < low + SCROLL_MARGIN ? -SCROLL_MARGIN / 2 : at > high - SCROLL_MARGIN ? SCROLL_MARGIN / 2 : 0;
    const name = timeline.querySelector(".timeline-name").offsetWidth;
    timeline.scrollBy(step(x, left + name, right), step(y, top, bottom));
  };

  board.addEventListener("dragstart", (event) => event.preventDefault());
  board.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch" || active) return;
    const track = event.target.closest(".timeline-track");
    const link = event.target.closest(".timeline-booking");
    if (!track || (link && !link.dataset.move) || (!link && !track.dataset.new)) return;
    const { clientX, clientY, pointerId } = event;
    const start = link
      ? begin(link, event.target.dataset.edge)
      : { track, anchor: snap(track, getMinutes(track, clientX)) };
    start.grip = getMinutes(track, clientX) - start.first;

    const listening = new AbortController();
    const listen = (name, handle) =>
      window.addEventListener(name, handle, { signal: listening.signal, capture: true });
    listen("pointermove", ({ clientX: x, clientY: y }) => {
      if (!active && Math.hypot(x - clientX, y - clientY) < THRESHOLD) return;
      if (!active) {
        active = start;
        board.setPointerCapture?.(pointerId);
      }
      scrollAlong(x, y);
      dragTo(x, y);
    });
    const end = (finish) => {
      listening.abort();
      if (!active) return;
      // The click that ends a drag opens nothing.
      const swallow = (click) => {
        click.preventDefault();
        click.stopPropagation();
      };
      window.addEventListener("click", swallow, { capture: true, once: true });
      setTimeout(() => window.removeEventListener("click", swallow, true));
      finish();
    };
    listen("pointerup", () => end(drop));
    listen("pointercancel", () => end(stop));
    listen("keydown", (key) => {
      if (key.key === "Escape") end(() => stop("Not moved."));
    });
  });

  // --- By keyboard.

  const findNeighbor = (track, step) => {
    const rows = [...board.querySelectorAll(".timeline-row")];
    const row = track.closest(".timeline-row");
    const column = [...row.querySelectorAll(".timeline-track")].indexOf(track);
    return rows[rows.indexOf(row) + step]?.querySelectorAll(".timeline-track")[column] ?? track;
  };

  const step = (key, changesEnd) => {
    const slot = Number(active.track.dataset.slotMinutes);
    const length = Number(active.track.dataset.minutes);
    const by = key === "ArrowLeft" ? -slot : key === "ArrowRight" ? slot : 0;
    const duration = active.last - active.first;
    if (changesEnd) {
      active.last = limit(active.last + by, active.first + slot, length);
    } else {
      if (!by) active.track = findNeighbor(active.track, key === "ArrowUp" ? -1 : 1);
      const last = Number(active.track.dataset.minutes) - duration;
      active.first = limit(active.first + by, getEarliest(active.track), last);
      active.last = active.first + duration;
    }
    draw();
    ghost.scrollIntoView({ block: "nearest", inline: "nearest" });
  };

  const onKey = (event) => {
    if (active && !active.isByKeyboard) return;
    if (!active) {
      const link = event.target.closest?.(".timeline-booking[data-move]");
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
      if (!link || !isPlain || event.key.toLowerCase() !== "m") return;
      active = { ...begin(link), isByKeyboard: true };
      draw();
      live.textContent =
        "Moving. The arrow keys change the time and the row, Shift and the arrow keys the end." +
        ` Enter drops, Escape cancels. ${live.textContent}`;
    } else if (event.key.startsWith("Arrow")) step(event.key, event.shiftKey);
    else if (event.key === "Enter") drop();
    else if (event.key === "Escape") stop("Not moved.");
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  board.addEventListener("keydown", onKey, true);
  board.addEventListener("focusout", () => active?.isByKeyboard && stop("Not moved."));
});
