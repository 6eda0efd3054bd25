/* Copyright The west-tinyml contributors
 * SPDX-License-Identifier: Apache-2.0 */

/* The table of layers: sorted by any column, searched by any text; the graph fades what is not found. */
(() => {
	"use strict";
	const table = document.getElementById("layers");
	const body = table.tBodies[0];
	const rows = Array.from(body.rows);
	const heads = Array.from(table.tHead.rows[0].cells);
	const search = document.getElementById("search");
	const found = document.getElementById("found");

	function value(row, column) {
		const cell = row.cells[column];
		return "value" in cell.dataset ? Number(cell.dataset.value || -1) : cell.textContent.trim();
	}

	function compare(a, b) {
		return typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true });
	}

	function sort(column) {
		const head = heads[column];
		const numeric = head.classList.contains("n") && column > 0;
		const before = head.getAttribute("aria-sort");
		const descending = before === null ? numeric : before === "ascending";
		heads.forEach((other) => other.removeAttribute("aria-sort"));
		head.setAttribute("aria-sort", descending ? "descending" : "ascending");
		const sign = descending ? -1 : 1;
		rows.sort((a, b) => sign * compare(value(a, column), value(b, column)));
		body.append(...rows);
	}

	heads.forEach((head, column) => {
		const button = document.createElement("button");
		button.type = "button";
		button.append(...head.childNodes);
		button.addEventListener("click", () => sort(column));
		head.append(button);
	});

	function filter() {
		const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
		const hits = new Set();
		for (const row of rows) {
			const titles = Array.from(row.cells, (cell) => cell.title).join(" ");
			const text = (row.textContent + " " + titles).toLowerCase();
			if (words.every((word) => text.includes(word))) {
				hits.add(row.dataset.layer);
			}
		}
		for (const part of document.querySelectorAll("[data-layer]")) {
			part.classList.toggle("miss", !hits.has(part.dataset.layer));
		}
		found.textContent = words.length ? hits.size + " of " + rows.length + " layers" : rows.length + " layers";
	}

	search.addEventListener("input", filter);
	document.addEventListener("keydown", (event) => {
		if (event.key === "/" && document.activeElement !== search) {
			event.preventDefault();
			search.focus();
		}
	});
	filter();

	/* Only the table scrolls to the selected row, not the page. */
	selection.onSelect((layer) => {
		const row = rows.find((candidate) => Number(candidate.dataset.layer) === layer);
		if (row) {
			const frame = table.parentElement;
			const top = row.offsetTop - table.tHead.offsetHeight;
			if (top < frame.scrollTop || row.offsetTop + row.offsetHeight > frame.scrollTop + frame.clientHeight) {
				frame.scrollTop = top - frame.clientHeight / 3;
			}
		}
	});
})();
