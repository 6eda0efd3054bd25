// Copyright The west-tinyml contributors
// SPDX-License-Identifier: Apache-2.0

// What the model answers: bars for classes, a table for the rest, a curve for a stream.

const MOST_BARS = 40, MOST_VALUES = 400, MOST_DECISIONS = 6;

function make(tag, properties = {}, ...children) {
	const element = Object.assign(document.createElement(tag), properties);
	element.append(...children);
	return element;
}

function classes() {
	const [port] = DATA.outputs;
	return DATA.outputs.length === 1 && elements(port) > 1 && elements(port) <= MOST_BARS;
}

function label(index) {
	return DATA.labels[index] ?? String(index);
}

function largest(values) {
	return values.reduce((best, value, index) => (value > values[best] ? index : best), 0);
}

function written(value) {
	return Number.isInteger(value) && Math.abs(value) < 1e9 ? String(value) : value.toPrecision(5);
}

function bars(values) {
	const low = Math.min(0, ...values), span = Math.max(...values) - low || 1, best = largest(values);
	return values.map((value, index) => {
		const fill = make("i");
		fill.style.width = `${Math.max(0, 100 * (value - low) / span)}%`;
		return make("div", { className: index === best ? "bar best" : "bar" },
			make("span", { textContent: label(index) }), make("span", { className: "track" }, fill),
			make("span", { textContent: written(value) }));
	});
}

function tableOf(port, values) {
	const columns = Math.min(port.shape.at(-1) || 1, 12), rows = [];
	for (let i = 0; i < Math.min(values.length, MOST_VALUES); i += columns) {
		rows.push(make("tr", {}, ...values.slice(i, i + columns).map((value) => make("td", { textContent: written(value) }))));
	}
	const left = values.length - MOST_VALUES;
	return [make("h2", { textContent: `${port.name}: ${port.shape.join("x")} ${port.type}` }),
		make("div", { className: "wide" }, make("table", {}, ...rows)),
		...(left > 0 ? [make("p", { textContent: `and ${left} more` })] : [])];
}

function show(model) {
	const parts = [];
	DATA.outputs.forEach((port, index) => {
		const values = model.read(index);
		parts.push(...(classes() ? bars(values) : tableOf(port, values)));
		if (classes()) {
			document.getElementById("decision").textContent = label(largest(values));
		}
	});
	document.getElementById("outputs").replaceChildren(...parts);
}

// The outputs of a stream over time: one line for each value.
class Curve {
	constructor() {
		this.points = [];
	}

	add(seconds, values) {
		this.points.push([seconds, values]);
	}

	// The classes that the model decided for, one after the other, with the second in which each began.
	decisions() {
		const changes = [];
		for (const [seconds, values] of this.points) {
			const found = largest(values);
			if (changes.at(-1)?.[0] !== found) changes.push([found, seconds]);
		}
		return changes.map(([found, seconds], i) => i ? `${label(found)} (${seconds.toFixed(1)} s)` : label(found));
	}

	show() {
		if (classes()) {
			const all = this.decisions(), more = all.length > MOST_DECISIONS ? [`${all.length - MOST_DECISIONS} more`] : [];
			document.getElementById("decision").textContent = [...all.slice(0, MOST_DECISIONS), ...more].join(" \u2192 ");
		}
		const count = this.points[0][1].length, last = this.points.at(-1)[0] || 1;
		const all = this.points.flatMap(([, values]) => values), low = Math.min(...all), span = Math.max(...all) - low || 1;
		const lines = Array.from({ length: count }, (_, k) => {
			const path = this.points.map(([t, v]) => `${(600 * t / last).toFixed(1)},${(160 - 150 * (v[k] - low) / span).toFixed(1)}`);
			return `<polyline fill="none" stroke="${Curve.color(k, count)}" stroke-width="2" points="${path.join(" ")}"/>`;
		});
		const drawing = make("div", { innerHTML: `<svg class="time" viewBox="0 0 600 170" preserveAspectRatio="none">${lines.join("")}</svg>` });
		const names = Array.from({ length: count }, (_, k) => {
			const chip = make("i");
			chip.style.background = Curve.color(k, count);
			return make("span", {}, chip, label(k));
		});
		const range = `${written(low)} to ${written(low + span)}, ${last.toFixed(2)} s`;
		document.getElementById("outputs").append(drawing, make("p", { className: "legend" }, ...names),
			make("p", { textContent: range }));
	}

	static color(index, count) {
		return `hsl(${Math.round(20 + 360 * index / count)} 75% 50%)`;
	}
}

function fail(error) {
	const place = document.getElementById("failure");
	place.hidden = !error;
	place.textContent = error ? String(error.message || error) : "";
}
