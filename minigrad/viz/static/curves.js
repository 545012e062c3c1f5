// Curves over the steps of a training: a slider smooths them, and the pointer leads to the moment below it.

// The path of a curve: each number is the mean of itself and those before it, which count `weight` times less for each step back.
const smoothed = (path, weight, fold) => { // `fold`: on a logarithmic axis, how much higher a number stands that is e times as large
  let total = 0, count = 0;
  return path.replace(/([ML])(\S+) ([^ML]+)/g, (_, letter, x, y) => {
    [total, count] = [weight * total + (fold ? Math.exp(-y / fold) : +y), weight * count + 1];
    return `${letter}${x} ${(fold ? -fold * Math.log(total / count) : total / count).toFixed(1)}`;
  });
};

// Each curve that has noise becomes pale, with its smoothed form above it; with the weight 0 it is as it was.
const smooth = (svg, weight) => {
  for (const form of svg.querySelectorAll(".mg-smoothed")) form.remove();
  for (const curve of svg.querySelectorAll(".mg-curve:not([data-exact]) path")) {
    curve.style.strokeOpacity = weight ? 0.35 : 1;
    if (!weight) continue;
    const form = curve.cloneNode();
    form.classList.add("mg-smoothed");
    form.setAttribute("d", smoothed(curve.getAttribute("d"), weight, curve.parentNode.dataset.fold));
    form.style.strokeOpacity = 1;
    curve.after(form);
  }
};

// The slider, where a curve has noise: its steps are weights that come nearer and nearer to 1.
const NOISY = /<g class="mg-curve"/, SMOOTHING = { name: "smoothing", settings: ["none", 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99] };

// The number of the moment that is nearest to the pointer; null if it is not over a chart.
const momentAt = (event) => {
  const chart = event.target.closest?.("[data-stops]");
  if (!chart) return null;
  const box = chart.getBoundingClientRect();
  const share = 1000 * (event.clientX - box.left) / box.width;
  const far = chart.dataset.stops.split(" ").map((stop) => Math.abs(stop - share));
  return far.indexOf(Math.min(...far));
};
