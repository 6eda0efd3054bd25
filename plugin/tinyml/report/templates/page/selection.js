/* Copyright The west-tinyml contributors
 * SPDX-License-Identifier: Apache-2.0 */

/* One layer is selected at most. Everything that belongs to it has its number in data-layer. */
const selection = (() => {
	"use strict";
	const root = document.documentElement;
	const parts = Array.from(document.querySelectorAll("[data-layer]"));
	const edges = Array.from(document.querySelectorAll(".edge"));
	const views = Array.from(document.querySelectorAll("svg, #layers"));
	const listeners = [];
	let current = null;

	root.classList.add("scripts");

	function layerOf(node) {
		const part = node instanceof Element ? node.closest("[data-layer]") : null;
		return part === null ? null : Number(part.dataset.layer);
	}

	function mark(name, layer) {
		for (const part of parts) {
			part.classList.toggle(name, layer !== null && Number(part.dataset.layer) === layer);
		}
	}

	function select(layer) {
		const article = layer === null ? null : document.getElementById("layer-" + layer);
		current = article === null ? null : layer;
		root.classList.toggle("chosen", current !== null);
		mark("selected", current);
		for (const edge of edges) {
			const touches = [edge.dataset.from, edge.dataset.to].map(Number).includes(current);
			edge.classList.toggle("selected", current !== null && touches);
		}
		for (const other of document.querySelectorAll("#details article")) {
			other.classList.toggle("selected", other === article);
		}
		for (const part of parts) {
			const chosen = part.classList.contains("selected");
			part.setAttribute(part.localName === "tr" ? "aria-selected" : "aria-pressed", String(chosen));
		}
		views.forEach(reach);
		document.getElementById("details").scrollTop = 0;
		try {
			history.replaceState(null, "", current === null ? "#" : "#layer-" + current);
		} catch {
			/* A page inside a notebook has no address of its own. */
		}
		listeners.forEach((listener) => listener(current));
	}

	/* The Tab key reaches each view once: at the selected layer, or at the first. */
	function reach(view) {
		const own = parts.filter((part) => view.contains(part));
		own.forEach((part) => part.setAttribute("tabindex", "-1"));
		const entry = own.find((part) => part.classList.contains("selected")) || own[0];
		if (entry) {
			entry.setAttribute("tabindex", "0");
		}
	}

	/* The neighbour in the same view, in the order in which the view shows it. */
	function neighbour(part, distance) {
		const view = views.find((candidate) => candidate.contains(part));
		const own = Array.from(view.querySelectorAll("[data-layer]:not(.miss)"));
		return own[Math.min(Math.max(own.indexOf(part) + distance, 0), own.length - 1)];
	}

	const distances = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Home: -Infinity, End: Infinity };

	document.addEventListener("mouseover", (event) => mark("hot", layerOf(event.target)));
	document.addEventListener("focusin", (event) => mark("hot", layerOf(event.target)));
	document.addEventListener("click", (event) => {
		const button = event.target.closest("[data-go]");
		if (button) {
			const step = Number(button.dataset.go);
			select(step === 0 ? null : Math.max(current + step, 0));
		} else if (layerOf(event.target) !== null) {
			select(layerOf(event.target));
		}
	});
	document.addEventListener("keydown", (event) => {
		if (event.key === "Escape") {
			select(null);
			return;
		}
		const part = event.target.closest("[data-layer]");
		if (part === null || event.ctrlKey || event.metaKey || event.altKey) {
			return;
		}
		if (event.key === "Enter" || event.key === " ") {
			select(layerOf(part));
		} else if (event.key in distances) {
			const next = neighbour(part, distances[event.key]);
			select(layerOf(next));
			next.focus({ preventScroll: next.localName !== "tr" });
		} else {
			return;
		}
		event.preventDefault();
	});

	views.forEach(reach);
	return {
		select,
		onSelect: (listener) => listeners.push(listener),
		restore: () => select(location.hash.startsWith("#layer-") ? Number(location.hash.slice(7)) : null),
	};
})();
