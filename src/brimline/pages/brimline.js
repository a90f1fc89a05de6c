// The ceiling slider and the copy button. What would go is asked of the server while the slider moves; without this
// script the form does the same with its button. Nothing is stored, and nobody but this server is asked.
"use strict";

const SETTLED_MS = 120;
const AGAIN_MS = 1000;
const form = document.querySelector("form[data-live]");

if (form) {
  const range = form.querySelector("input[type=range]");
  const field = form.querySelector("input[name=ceiling]");
  const plan = document.getElementById("plan");
  let asked = 0;
  let timer;

  const ask = async () => {
    const number = ++asked;
    const query = new URLSearchParams(new FormData(form));
    plan.setAttribute("aria-busy", "true");
    let found;
    try {
      const answer = await fetch(`${form.getAttribute("action")}?${query}&part=plan`);
      found = answer.ok ? await answer.text() : null;
    } catch {
      found = null;
    }
    if (number !== asked) return; // a later one is under way
    plan.removeAttribute("aria-busy");
    if (found === null) {
      plan.textContent = "The server does not answer: reload the page.";
      return;
    }
    show(plan, found);
    history.replaceState(null, "", `?${query}`);
  };

  const moved = (from, to) => {
    if (!field.checkValidity()) return;
    to.value = from.value;
    clearTimeout(timer);
    timer = setTimeout(ask, SETTLED_MS);
  };

  range.addEventListener("input", () => { field.value = range.value; moved(range, field); });
  field.addEventListener("input", () => moved(field, range));
  form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(timer); ask(); });
  form.querySelector("button").hidden = true;
  range.closest("label").hidden = false;
}

// An answer that takes a while is asked for again until it is there.
const askAgain = async () => {
  const plan = document.getElementById("plan");
  if (!plan || !plan.querySelector("[data-again]")) return;
  try {
    const answer = await fetch(`${location.pathname}${location.search}&part=plan`);
    if (!answer.ok) return;
    show(plan, await answer.text());
  } catch {
    return;
  }
  setTimeout(askAgain, AGAIN_MS);
};
setTimeout(askAgain, AGAIN_MS);

function show(plan, found) {
  plan.innerHTML = found; // made, and escaped, by the server; scripts in it would not run
  document.getElementById("said").textContent = plan.querySelector(".lead").textContent;
  showCopyButtons();
}

function showCopyButtons() {
  // Browsers let pages copy on localhost and over TLS only
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll("button[data-copy]")) button.hidden = false;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
});
showCopyButtons();
