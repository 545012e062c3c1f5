// Slides by keyboard alone: `e` enters the view on a slide and Escape leaves it, `r` shows what is hidden, `s` opens the notes.
const current = (what) => Reveal.getCurrentSlide()?.querySelector(what);

function enter() {
  const frame = current("iframe.live");
  if (!frame) return;
  frame.focus();
  frame.contentWindow.postMessage("minigrad:enter", "*");
}

function reveal() {
  const hidden = current("details.reveal:not([open])");
  const shown = [...(Reveal.getCurrentSlide()?.querySelectorAll("details.reveal[open]") ?? [])];
  if (hidden) hidden.open = true;
  else for (const each of shown) each.open = false;
  Reveal.layout();
}

addEventListener("message", (event) => {
  if (event.data === "minigrad:leave") window.focus(), document.activeElement?.blur();
});

const phone = innerWidth < 600;  // where slides are scrolled, each as wide as the screen
Reveal.initialize({
  hash: true, slideNumber: "c/t", transition: "none", width: phone ? 640 : 1280, height: phone ? 960 : 720, margin: 0.04, center: false,
  scrollActivationWidth: 600, plugins: [RevealNotes],
  keyboardCondition: (event) => !(event.target.closest && event.target.closest("summary") && [" ", "Enter"].includes(event.key)),
}).then(() => {
  Reveal.addKeyBinding({ keyCode: 69, key: "E", description: "enter the view" }, enter);
  Reveal.addKeyBinding({ keyCode: 82, key: "R", description: "show what is hidden" }, reveal);
  document.body.dataset.ready = "true";
});
