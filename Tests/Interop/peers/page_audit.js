// What is wrong with the page as it is shown now, as a list of texts: contrast of texts (WCAG 1.4.3), controls
// without a name (4.1.2), and things that stick out of the window (1.4.10).
(() => {
  const problems = new Set();
  const pixel = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const colour = (text) => {
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = text;
    pixel.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pixel.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, alpha, below) => [0, 1, 2].map((i) => top[i] * alpha + below[i] * (1 - alpha));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  // Null where a picture is behind the text.
  const background = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const style = getComputedStyle(e);
      if (style.backgroundImage !== "none") return null;
      const layer = colour(style.backgroundColor);
      if (layer[3] > 0) layers.push(layer);
      if (layer[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, layer[3], below), [255, 255, 255]);
  };
  const name = (e) => `${e.tagName.toLowerCase()}${e.id ? "#" + e.id : ""} "${(e.textContent || e.value || "").trim().slice(0, 24)}"`;
  for (const element of document.querySelectorAll("body *")) {
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    if (element.closest(":disabled, :has(> :disabled), [aria-hidden=true], .tile, .skip")) continue;
    const isField = ["INPUT", "SELECT", "TEXTAREA"].includes(element.tagName) && !["radio", "checkbox"].includes(element.type);
    if (!isField && ![...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())) continue;
    const below = background(element);
    if (!below) continue;
    let opacity = 1;
    for (let e = element; e; e = e.parentElement) opacity *= Number(getComputedStyle(e).opacity);
    const style = getComputedStyle(element);
    const text = colour(style.color);
    const [light, dark] = [luminance(over(text, text[3] * opacity, below)), luminance(below)].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < 4.5) problems.add(`contrast ${ratio.toFixed(2)}: ${name(element)}`);
  }
  for (const control of document.querySelectorAll("button, input, select, textarea, summary, a[href]")) {
    if (!control.checkVisibility() || control.closest(".skip")) continue;
    const label = control.getAttribute("aria-label") || control.labels?.[0]?.textContent || control.textContent;
    if (!label?.trim()) problems.add(`no name: ${name(control)}`);
    const box = control.getBoundingClientRect();
    if (box.height < 24 && !control.closest("label")) problems.add(`only ${box.height} high: ${name(control)}`);
    if (box.right > innerWidth + 1 && !control.closest("[role=tablist], .scroll")) problems.add(`sticks out: ${name(control)}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) problems.add("the page scrolls sideways");
  return [...problems].join("; ");
})()
