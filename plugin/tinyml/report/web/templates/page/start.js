// Copyright The west-tinyml contributors
// SPDX-License-Identifier: Apache-2.0

// Load the model, check it with the examples, and offer them.

// Run one example; whether every byte of every output is as expected.
function agrees(model, example) {
	example.inputs.forEach((text, i) => {
		const input = model.input(i);
		new Uint8Array(input.buffer, input.byteOffset, input.byteLength).set(bytesOf(text));
	});
	model.run();
	return example.outputs.every((text, i) => {
		const output = model.output(i), expected = bytesOf(text);
		const found = new Uint8Array(output.buffer, output.byteOffset, output.byteLength);
		return found.length === expected.length && found.every((byte, k) => byte === expected[k]);
	});
}

// The inputs of an example as real numbers.
function realInputs(example) {
	return example.inputs.map((text, i) => {
		const port = DATA.inputs[i], stored = Array.from(new TYPES[port.type](bytesOf(text).buffer), Number);
		return stored.map((value) => port.scale ? port.scale * (value - port.zero) : value);
	});
}

function check(model) {
	model.reset();
	const right = DATA.runs.filter((example) => agrees(model, example)).length, place = document.getElementById("check");
	model.reset();
	place.className = right === DATA.runs.length ? "good" : "bad";
	place.textContent = `${right} of ${DATA.runs.length} examples: every byte of the outputs as in the C program`;
}

function offer(model, present) {
	const row = document.querySelector("#examples .row");
	document.getElementById("examples").hidden = !DATA.runs.length && !DATA.recordings.length;
	DATA.runs.forEach((example, i) => {
		const button = make("button", { type: "button", className: "example", title: `example ${i + 1}` });
		if (DATA.frame) {
			const small = make("canvas");
			paint(small, realInputs(example)[0], DATA.frame);
			button.append(small);
		} else {
			Object.assign(button, { className: "example text", textContent: String(i + 1) });
		}
		button.addEventListener("click", () => attempt(() => {
			present(realInputs(example));
			agrees(model, example);
			show(model);
		}));
		row.append(button);
	});
	const Type = DATA.frontend?.sample === "float" ? Float32Array : Int16Array;
	DATA.recordings.forEach(({ name, data }) => {
		const button = make("button", { type: "button", className: "example text", textContent: name });
		button.addEventListener("click", () => attempt(() => feed(model, new Type(bytesOf(data).buffer))));
		row.append(button);
	});
}

async function start() {
	const model = await Model.load(), tools = document.getElementById("tools");
	const answer = (values) => attempt(() => {
		values.forEach((array, i) => model.write(i, array));
		model.run();
		show(model);
	});
	const kinds = { draw: () => drawing(tools, answer), picture: () => picture(tools, answer), sound: () => sound(tools, model),
		recording: () => recording(tools, model), numbers: () => numbers(tools, answer) };
	const present = kinds[DATA.kind]();
	if (DATA.stateful && !DATA.frontend) {
		tools.append(make("button", { type: "button", textContent: "Forget earlier inputs", onclick: () => model.reset() }));
	}
	if (DATA.runs.length) check(model);
	offer(model, present || (() => {}));
	return model;
}

window.ready = start();
window.ready.catch(fail);
