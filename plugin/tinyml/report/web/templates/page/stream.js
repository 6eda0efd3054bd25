// Copyright The west-tinyml contributors
// SPDX-License-Identifier: Apache-2.0

// Samples for the model's front end: from the microphone, a sound file, or a table of sensor values.

// Feed whole samples (all axes of one, then the next); the model runs whenever it has enough.
function feed(model, samples) {
	const { axes, rate, portion, sample } = DATA.frontend, { exports } = model;
	const Type = sample === "float" ? Float32Array : Int16Array;
	const most = Math.floor(portion / axes), curve = new Curve();
	const totals = samples.length / axes;
	exports.feed_reset();
	for (let first = 0; first < totals; first += most) {
		const count = Math.min(most, totals - first);
		new Type(exports.memory.buffer, exports.portion(), count * axes).set(samples.subarray(first * axes, (first + count) * axes));
		for (let taken = 0; taken < count;) {
			const step = exports.feed(taken, count - taken), ran = exports.ran();
			if (ran < 0) throw new Error(`the model returned ${ran}`);
			taken += step;
			if (ran > 0) curve.add((first + taken) / rate, model.read(0));
			if (step === 0 && ran === 0) break;
		}
	}
	if (!curve.points.length) {
		throw new Error(`${(totals / rate).toFixed(2)} s are too short: the model has not run once`);
	}
	show(model);
	curve.show();
	return curve;
}

async function soundOf(bytes) {
	const rate = DATA.frontend.rate;
	const decoded = await new OfflineAudioContext(1, 1, rate).decodeAudioData(bytes);
	const resampler = new OfflineAudioContext(1, Math.max(1, Math.ceil(decoded.duration * rate)), rate);
	const source = new AudioBufferSourceNode(resampler, { buffer: decoded });
	source.connect(resampler.destination);
	source.start();
	return samplesOf((await resampler.startRendering()).getChannelData(0));
}

function samplesOf(levels) {
	return Int16Array.from(levels, (level) => Math.max(-32768, Math.min(32767, Math.round(32768 * level))));
}

// A WAV file of the front end's own rate needs no resampling, and is then taken as it is.
function plainWav(bytes) {
	const view = new DataView(bytes), text = (at) => String.fromCharCode(...new Uint8Array(bytes, at, 4));
	if (bytes.byteLength < 44 || text(0) !== "RIFF" || text(8) !== "WAVE") return null;
	let usable = false;
	for (let at = 12; at + 8 <= bytes.byteLength; at += 8 + view.getUint32(at + 4, true) + view.getUint32(at + 4, true) % 2) {
		if (text(at) === "fmt ") {
			usable = view.getUint16(at + 8, true) === 1 && view.getUint16(at + 10, true) === 1
				&& view.getUint32(at + 12, true) === DATA.frontend.rate && view.getUint16(at + 22, true) === 16;
		} else if (text(at) === "data" && usable) {
			const count = Math.min(view.getUint32(at + 4, true), bytes.byteLength - at - 8) >> 1;
			return new Int16Array(bytes.slice(at + 8, at + 8 + 2 * count));
		}
	}
	return null;
}

function sound(tools, model) {
	const SECONDS = 3, say = make("button", { type: "button", className: "main", textContent: `Record ${SECONDS} seconds` });

	async function take(file) {
		const bytes = await file.arrayBuffer();
		let samples = plainWav(bytes);
		try {
			samples ||= await soundOf(bytes);
		} catch {
			fail(`${file.name} is not a sound that this browser can read`);
			return;
		}
		attempt(() => feed(model, samples));
	}

	say.addEventListener("click", async () => {
		try {
			const microphone = await navigator.mediaDevices.getUserMedia({ audio: true });
			const recorder = new MediaRecorder(microphone), pieces = [];
			recorder.addEventListener("dataavailable", (event) => pieces.push(event.data));
			recorder.addEventListener("stop", () => {
				microphone.getTracks().forEach((track) => track.stop());
				Object.assign(say, { textContent: `Record ${SECONDS} seconds`, disabled: false });
				take(new File(pieces, "the recording"));
			});
			Object.assign(say, { textContent: "Recording …", disabled: true });
			recorder.start();
			setTimeout(() => recorder.stop(), 1000 * SECONDS);
		} catch (error) {
			fail(`no microphone: ${error.message}`);
		}
	});
	droppable(tools, take);
	tools.append(make("div", { className: "row" }, say, chooser("Choose a sound", "audio/*", take)),
		make("p", { textContent: `or drop a file here; ${DATA.frontend.rate} samples a second reach the model` }));
}

function recording(tools, model) {
	const { axes, rate, sample } = DATA.frontend, Type = sample === "float" ? Float32Array : Int16Array;

	async function read(file) {
		const text = await file.text();
		attempt(() => feed(model, Type.from(numbersIn(text))));
	}

	droppable(tools, read);
	tools.append(make("div", { className: "row" }, chooser("Choose a table", ".csv,.txt", read)),
		make("p", { textContent: `or drop one here: ${axes} value${axes > 1 ? "s" : ""} in a line, ${rate} lines a second` }));
}

function attempt(action) {
	try {
		fail(null);
		action();
	} catch (error) {
		fail(error);
	}
}
