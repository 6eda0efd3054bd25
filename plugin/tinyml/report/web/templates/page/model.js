// Copyright The west-tinyml contributors
// SPDX-License-Identifier: Apache-2.0

// The model: its module, and arrays over its memory.

const DATA = JSON.parse(document.getElementById("data").textContent);
const TYPES = {
	float32: Float32Array, float64: Float64Array, int8: Int8Array, uint8: Uint8Array, bool: Uint8Array,
	int16: Int16Array, uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array,
	int64: BigInt64Array, uint64: BigUint64Array,
};

function bytesOf(text) {
	return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

function elements(port) {
	return port.shape.reduce((product, extent) => product * extent, 1);
}

class Model {
	static async load() {
		const code = await WebAssembly.compile(bytesOf(DATA.module));
		// The C library may want to end the program; a model never does.
		const imports = {};
		for (const { module, name } of WebAssembly.Module.imports(code)) {
			(imports[module] ||= {})[name] = () => { throw new Error(`the module called ${name}`); };
		}
		return new Model((await WebAssembly.instantiate(code, imports)).exports);
	}

	constructor(exports) {
		this.exports = exports;
	}

	// The values of a port where the C keeps them.
	stored(port, address) {
		return new TYPES[port.type](this.exports.memory.buffer, address, elements(port));
	}

	input(index) {
		return this.stored(DATA.inputs[index], this.exports.input(index));
	}

	output(index) {
		return this.stored(DATA.outputs[index], this.exports.output(index));
	}

	// Real numbers, quantised as firmware does it.
	write(index, values) {
		const port = DATA.inputs[index], stored = this.input(index);
		const wide = stored instanceof BigInt64Array || stored instanceof BigUint64Array;
		for (let i = 0; i < stored.length; i++) {
			stored[i] = wide ? BigInt(Math.round(values[i])) : port.scale ? quantized(values[i], port) : values[i];
		}
	}

	// Real numbers, whatever the stored type.
	read(index) {
		const port = DATA.outputs[index];
		return Array.from(this.output(index), Number).map((value) => port.scale ? port.scale * (value - port.zero) : value);
	}

	run() {
		const status = this.exports.run();
		if (status !== 0) {
			throw new Error(`the model returned ${status}`);
		}
	}

	reset() {
		this.exports.reset();
	}
}

const LIMITS = { int8: [-128, 127], uint8: [0, 255], int16: [-32768, 32767], uint16: [0, 65535] };

// Halves go to the even neighbour, as in C's rintf().
function quantized(value, port) {
	const exact = Math.fround(value) / Math.fround(port.scale), below = Math.floor(exact), part = exact - below;
	const step = part < 0.5 || (part === 0.5 && below % 2 === 0) ? below : below + 1;
	const [low, high] = LIMITS[port.type] || [-2147483648, 2147483647];
	return Math.min(high, Math.max(low, step + port.zero));
}
