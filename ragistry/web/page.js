// Keys: "/" goes to the field, arrows go through results, Enter opens, "a" keeps that a passage answers, Esc closes.
window.ragistryReader = (() => {
  const FIELD = ".rg-query input", RESULT = ".rg-hit-title, .rg-more-one";
  const all = (selector) => [...document.querySelectorAll(selector)].filter((one) => one.offsetParent);
  const field = () => document.querySelector(FIELD);
  const isShown = () => document.querySelector(".rg-reader")?.getClientRects().length > 0;
  let last = null; // the result that was opened

  function step(items, steps, now) {
    const at = items.indexOf(now);
    return items[at < 0 ? (steps > 0 ? 0 : items.length - 1) : at + steps];
  }

  function resultKey(event) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return false;
    const results = all(RESULT), now = document.activeElement, inField = now === field();
    if (!results.length || !(inField || now === document.body || results.includes(now))) return false;
    const from = inField ? null : results.includes(now) ? now : last;
    const next = inField && event.key === "ArrowUp" ? null : step(results, event.key === "ArrowDown" ? 1 : -1, from);
    if (next) next.focus();
    else if (event.key === "ArrowUp") field().focus();
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (!field() || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector(".q-dialog, .q-menu")) return;
    const typing = event.target.closest("input, textarea, [contenteditable]");
    let done = false;
    if (event.key === "/" && !typing) { field().focus(); field().select(); done = true; }
    else if (event.key === "Escape" && isShown()) { document.querySelector(".rg-reader-close").click(); done = true; }
    else if (event.key === "a" && !typing && isShown()) { document.querySelector(".rg-confirm")?.click(); done = true; }
    else if (!typing || event.target === field()) done = resultKey(event);
    if (done) { event.preventDefault(); event.stopImmediatePropagation(); }
  }, true);

  function opened(id) {
    requestAnimationFrame(() => {
      const same = `[data-passage="${CSS.escape(id)}"]`, now = document.activeElement;
      last = now?.matches(same) ? now : document.querySelector(`.rg-hit ${same}`) ?? document.querySelector(same);
      for (const one of document.querySelectorAll(".rg-hit")) one.classList.toggle("rg-open", !!one.querySelector(same));
      const body = document.querySelector(".rg-reader-body"), here = body?.querySelector(".rg-here");
      if (!here) return;
      body.scrollTop = body.querySelector(".rg-page") ? 0 : here.offsetTop - body.offsetTop - 24;
      if (getComputedStyle(document.querySelector(".rg-reader")).position === "fixed") document.querySelector(".rg-reader-close").focus();
    });
  }

  function closed() {
    for (const one of document.querySelectorAll(".rg-open")) one.classList.remove("rg-open");
    (last?.isConnected ? last : field())?.focus();
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // only pages of this machine or with TLS have a clipboard
      const box = document.body.appendChild(Object.assign(document.createElement("textarea"), { value: text }));
      box.select();
      document.execCommand("copy");
      box.remove();
    }
  }

  return { opened, closed, copy };
})();
