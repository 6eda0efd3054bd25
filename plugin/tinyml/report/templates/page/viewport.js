/* Copyright The west-tinyml contributors
 * SPDX-License-Identifier: Apache-2.0 */

/* The graph moves and zooms: the picture stays, its viewBox changes. */
(() => {
	"use strict";
	const frame = document.querySelector(".viewport");
	const svg = frame.querySelector("svg");
	const whole = svg.viewBox.baseVal;
	const size = { width: whole.width, height: whole.height };
	const least = 0.05, most = 4, readable = 0.8, drag = 4;
	const pointers = new Map();
	let scale = 1, x = 0, y = 0, moved = 0, started = false;

	/* A page that is not shown yet, in a notebook for example, has no size: there is nothing to fit. */
	function visible() {
		return frame.clientWidth > 0 && frame.clientHeight > 0;
	}

	function show() {
		if (!visible()) {
			return;
		}
		const width = frame.clientWidth / scale, height = frame.clientHeight / scale;
		x = size.width < width ? (size.width - width) / 2 : Math.min(Math.max(x, -width / 2), size.width - width / 2);
		y = Math.min(Math.max(y, -height / 2), size.height - height / 2);
		svg.setAttribute("viewBox", [x, y, width, height].join(" "));
		frame.dataset.scale = scale.toFixed(3);
	}

	/* The point of the picture at px, py of the frame stays where it is. */
	function zoom(factor, px = frame.clientWidth / 2, py = frame.clientHeight / 2) {
		const next = Math.min(Math.max(scale * factor, least), most);
		x += px / scale - px / next;
		y += py / scale - py / next;
		scale = next;
		show();
	}

	function fit() {
		if (!visible()) {
			return;
		}
		scale = Math.min(frame.clientWidth / size.width, frame.clientHeight / size.height, 1);
		x = (size.width - frame.clientWidth / scale) / 2;
		y = (size.height - frame.clientHeight / scale) / 2;
		show();
	}

	/* A picture too large to be read as a whole starts at its top. */
	function start() {
		started = visible();
		fit();
		if (scale < readable) {
			scale = Math.min(Math.max(frame.clientWidth / size.width, readable), 1);
			x = (size.width - frame.clientWidth / scale) / 2;
			y = 0;
			show();
		}
	}

	function reveal(layer) {
		const node = layer === null ? null : svg.querySelector('[data-layer="' + layer + '"]');
		if (node === null) {
			return;
		}
		const box = node.getBBox(), width = frame.clientWidth / scale, height = frame.clientHeight / scale;
		if (box.x < x || box.x + box.width > x + width) {
			x = box.x + box.width / 2 - width / 2;
		}
		if (box.y < y || box.y + box.height > y + height) {
			y = box.y + box.height / 2 - height / 2;
		}
		show();
	}

	const actions = {
		in: () => zoom(1.25),
		out: () => zoom(0.8),
		fit,
		actual: () => zoom(1 / scale),
	};
	for (const button of document.querySelectorAll("[data-zoom]")) {
		button.addEventListener("click", actions[button.dataset.zoom]);
	}
	frame.addEventListener("keydown", (event) => {
		const action = { "+": "in", "=": "in", "-": "out", 0: "fit", 1: "actual" }[event.key];
		if (action && !event.ctrlKey && !event.metaKey) {
			event.preventDefault();
			actions[action]();
		}
	});
	frame.addEventListener("wheel", (event) => {
		if (event.ctrlKey || event.metaKey) {
			event.preventDefault();
			const box = frame.getBoundingClientRect();
			zoom(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
		}
	}, { passive: false });

	/* One pointer moves the picture, two pinch it. */
	function middle() {
		const [a, b] = pointers.values(), box = frame.getBoundingClientRect();
		return { x: (a.x + b.x) / 2 - box.left, y: (a.y + b.y) / 2 - box.top, apart: Math.hypot(a.x - b.x, a.y - b.y) };
	}

	frame.addEventListener("pointerdown", (event) => {
		moved = pointers.size ? moved : 0;
		pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
	});
	window.addEventListener("pointermove", (event) => {
		const before = pointers.get(event.pointerId);
		if (before === undefined) {
			return;
		}
		const here = { x: event.clientX, y: event.clientY };
		moved += Math.hypot(here.x - before.x, here.y - before.y);
		const pinch = pointers.size === 2 ? middle() : null;
		pointers.set(event.pointerId, here);
		if (pinch) {
			const now = middle();
			zoom(now.apart / (pinch.apart || 1), now.x, now.y);
		} else if (moved > drag) {
			x -= (here.x - before.x) / scale;
			y -= (here.y - before.y) / scale;
			show();
		}
	});
	for (const end of ["pointerup", "pointercancel"]) {
		window.addEventListener(end, (event) => pointers.delete(event.pointerId));
	}
	frame.addEventListener("click", (event) => {
		if (moved > drag) {
			event.stopPropagation(); /* the end of a drag selects nothing */
		}
		moved = 0;
	}, true);
	window.addEventListener("resize", () => (started ? show() : start()));

	start();
	selection.onSelect(reveal);
	selection.restore();
	window.addEventListener("hashchange", selection.restore);
})();
