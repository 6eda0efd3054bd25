// Copyright The west-tinyml contributors
// SPDX-License-Identifier: Apache-2.0

// A canvas to draw on, and pictures as values of the model.

const SIDE = 320;

// The values of a picture (what ImageData has), in the order of the model's channels.
function valuesOf(picture, frame) {
	const { width, height, channels, planar, low, high } = frame, area = width * height;
	const values = new Float64Array(area * channels);
	for (let i = 0; i < area; i++) {
		const [r, g, b] = picture.data.subarray(4 * i, 4 * i + 3);
		const levels = channels === 1 ? [(299 * r + 587 * g + 114 * b) / 1000] : [r, g, b];
		levels.forEach((level, c) => {
			values[planar ? c * area + i : i * channels + c] = low + (high - low) * level / 255;
		});
	}
	return values;
}

// Draw values of the model on a canvas of its size.
function paint(canvas, values, frame) {
	const { width, height, channels, planar, low, high } = frame, area = width * height;
	Object.assign(canvas, { width, height });
	const picture = new ImageData(width, height);
	for (let i = 0; i < area; i++) {
		for (let c = 0; c < 3; c++) {
			const k = Math.min(c, channels - 1), value = values[planar ? k * area + i : i * channels + k];
			picture.data[4 * i + c] = Math.round(255 * (value - low) / (high - low));
		}
		picture.data[4 * i + 3] = 255;
	}
	canvas.getContext("2d").putImageData(picture, 0, 0);
}

// The part of a canvas that has ink; null if it is empty.
function inked(context) {
	const { data } = context.getImageData(0, 0, SIDE, SIDE);
	let [left, top, right, bottom] = [SIDE, SIDE, -1, -1];
	for (let i = 0; i < SIDE * SIDE; i++) {
		if (data[4 * i] > 32) {
			const x = i % SIDE, y = (i - x) / SIDE;
			left = Math.min(left, x); right = Math.max(right, x); top = Math.min(top, y); bottom = Math.max(bottom, y);
		}
	}
	return right < 0 ? null : [left, top, right - left + 1, bottom - top + 1];
}

// Averages of blocks, as an area of pixels becomes one; browsers differ in how they shrink pictures.
function shrunk(source, [x, y, w, h], frame, fit) {
	const { width, height } = frame, scale = fit ? Math.min(width / w, height / h) : width / w;
	const levels = source.getContext("2d").getImageData(0, 0, source.width, source.height).data;
	const x0 = fit ? x - (width / scale - w) / 2 : x, y0 = fit ? y - (height / scale - h) / 2 : y;
	const out = new ImageData(width, height), parts = 8;
	for (let row = 0; row < height; row++) {
		for (let column = 0; column < width; column++) {
			const sum = [0, 0, 0];
			for (let k = 0; k < parts * parts; k++) {
				const px = Math.floor(x0 + (column + (k % parts + 0.5) / parts) / scale);
				const py = Math.floor(y0 + (row + (Math.floor(k / parts) + 0.5) / parts) / scale);
				if (px >= 0 && py >= 0 && px < source.width && py < source.height) {
					for (let c = 0; c < 3; c++) sum[c] += levels[4 * (py * source.width + px) + c];
				}
			}
			for (let c = 0; c < 3; c++) out.data[4 * (row * width + column) + c] = sum[c] / (parts * parts);
			out.data[4 * (row * width + column) + 3] = 255;
		}
	}
	return out;
}

function drawing(tools, answer) {
	const canvas = make("canvas", { className: "pad", width: SIDE, height: SIDE, tabIndex: 0 });
	canvas.setAttribute("aria-label", "Draw here");
	const context = canvas.getContext("2d", { willReadFrequently: true });
	const seen = make("canvas", { className: "seen" }), fit = make("input", { type: "checkbox", checked: true });
	let last = null;

	function clear() {
		context.fillStyle = "#000";
		context.fillRect(0, 0, SIDE, SIDE);
	}

	function given() {
		const box = inked(context), whole = [0, 0, SIDE, SIDE];
		const picture = shrunk(canvas, fit.checked && box ? box : whole, DATA.frame, fit.checked && box !== null);
		const values = valuesOf(picture, DATA.frame);
		paint(seen, values, DATA.frame);
		answer([values]);
	}

	function at(event) {
		const place = canvas.getBoundingClientRect();
		return [(event.clientX - place.left) * SIDE / place.width, (event.clientY - place.top) * SIDE / place.height];
	}

	canvas.addEventListener("pointerdown", (event) => {
		canvas.setPointerCapture(event.pointerId);
		last = at(event);
	});
	canvas.addEventListener("pointermove", (event) => {
		if (!last) return;
		const next = at(event);
		Object.assign(context, { strokeStyle: "#fff", lineWidth: SIDE / 9, lineCap: "round" });
		context.beginPath();
		context.moveTo(...last);
		context.lineTo(...next);
		context.stroke();
		last = next;
		given();
	});
	canvas.addEventListener("pointerup", () => { last = null; });
	fit.addEventListener("change", given);
	clear();
	paint(seen, valuesOf(new ImageData(DATA.frame.width, DATA.frame.height), DATA.frame), DATA.frame);
	const hint = `Draw here with the mouse or a finger${DATA.runs.length ? ", or choose an example" : ""}.`;
	tools.append(make("p", { textContent: hint }), canvas, make("div", { className: "row" },
		make("button", { type: "button", textContent: "Clear", onclick() { clear(); given(); } }),
		make("label", {}, fit, " fit to the frame")),
	make("div", { className: "row" }, seen, make("span", { className: "soft", textContent: "what the model sees" })));
	return (values) => paint(seen, values[0], DATA.frame);
}
