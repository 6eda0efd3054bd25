// Copyright The west-tinyml contributors
// SPDX-License-Identifier: Apache-2.0

// Inputs as numbers: typed, pasted, or from a file.

function numbersIn(text) {
	const lines = text.split(/\r?\n/).filter((line) => /^[\s,;+\-.\deEinfINFNAn]*$/.test(line)); // not a line of titles
	return lines.flatMap((line) => line.split(/[\s,;]+/)).filter((word) => word).map(Number);
}

// The values of a .npy file of the usual types.
function npy(bytes) {
	const view = new DataView(bytes), long = view.getUint8(6) > 1;
	const length = long ? view.getUint32(8, true) : view.getUint16(8, true), start = (long ? 12 : 10) + length;
	const head = new TextDecoder().decode(new Uint8Array(bytes, long ? 12 : 10, length));
	const types = { f4: "float32", f8: "float64", i1: "int8", u1: "uint8", b1: "bool", i2: "int16", u2: "uint16",
		i4: "int32", u4: "uint32", i8: "int64", u8: "uint64" };
	const found = /'descr': '[<|=](\w+)'/.exec(head);
	if (!found || !types[found[1]] || /'fortran_order': True/.test(head)) throw new Error("numbers of this .npy cannot be read");
	return Array.from(new TYPES[types[found[1]]](bytes.slice(start)), Number);
}

function numbers(tools, answer) {
	const fields = DATA.inputs.map((port) => {
		const field = make("textarea", { spellcheck: false, value: new Array(Math.min(elements(port), 4096)).fill(0).join(" ") });
		async function take(file) {
			try {
				const values = /\.npy$/i.test(file.name) ? npy(await file.arrayBuffer()) : numbersIn(await file.text());
				field.value = values.join(" ");
				given();
			} catch (error) {
				fail(error);
			}
		}
		droppable(field, take);
		tools.append(make("label", { className: "field" }, `${port.name}: ${port.shape.join("x")} numbers`, field),
			make("div", { className: "row" }, chooser("From a file", ".csv,.txt,.npy", take)));
		return field;
	});

	function given() {
		const values = fields.map((field) => numbersIn(field.value));
		const wrong = DATA.inputs.findIndex((port, i) => values[i].length !== elements(port) || values[i].some(Number.isNaN));
		if (wrong >= 0) {
			const port = DATA.inputs[wrong], bad = values[wrong].some(Number.isNaN);
			fail(bad ? `${port.name}: not all of this are numbers`
				: `${port.name} has ${elements(port)} numbers; these are ${values[wrong].length}`);
			return;
		}
		answer(values);
	}

	tools.append(make("button", { type: "button", className: "main", textContent: "Run", onclick: given }));
	return (values) => values.forEach((array, i) => { fields[i].value = array.join(" "); });
}
