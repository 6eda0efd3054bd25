// Copyright The west-tinyml contributors
// SPDX-License-Identifier: Apache-2.0

// A picture from a file or the camera, cut to the frame of the model.

function chooser(text, accept, take) {
	const input = make("input", { type: "file", accept });
	input.addEventListener("change", () => { if (input.files.length) take(input.files[0]); input.value = ""; });
	return make("label", { className: "file" }, text, input);
}

function droppable(element, take) {
	element.addEventListener("dragover", (event) => { event.preventDefault(); element.classList.add("dropping"); });
	element.addEventListener("dragleave", () => element.classList.remove("dropping"));
	element.addEventListener("drop", (event) => {
		event.preventDefault();
		element.classList.remove("dropping");
		if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
	});
}

function picture(tools, answer) {
	const seen = make("canvas", { className: "pad" }), video = make("video", { hidden: true, muted: true, playsInline: true });
	const { width, height } = DATA.frame;
	let camera = null;

	function given(source, w, h) {
		const side = Math.min(w / width, h / height), whole = make("canvas", { width: w, height: h });
		whole.getContext("2d").drawImage(source, 0, 0, w, h);
		const cut = [(w - side * width) / 2, (h - side * height) / 2, side * width, side * height];
		const values = valuesOf(shrunk(whole, cut, DATA.frame, false), DATA.frame);
		paint(seen, values, DATA.frame);
		answer([values]);
	}

	async function take(file) {
		try {
			const bitmap = await createImageBitmap(file);
			given(bitmap, bitmap.width, bitmap.height);
		} catch {
			fail(`${file.name} is not a picture that this browser can read`);
		}
	}

	async function film() {
		if (camera) {
			camera.getTracks().forEach((track) => track.stop());
			camera = null;
			video.hidden = true;
			return;
		}
		try {
			camera = await navigator.mediaDevices.getUserMedia({ video: true });
		} catch (error) {
			fail(`no camera: ${error.message}`);
			return;
		}
		video.hidden = false;
		video.srcObject = camera;
		await video.play();
		(function next() {
			if (!camera) return;
			given(video, video.videoWidth, video.videoHeight);
			requestAnimationFrame(next);
		})();
	}

	droppable(tools, take);
	tools.append(seen, video, make("div", { className: "row" }, chooser("Choose a picture", "image/*", take),
		make("button", { type: "button", textContent: "Camera", onclick: film })),
	make("p", { textContent: "or drop one here" }));
	return (values) => paint(seen, values[0], DATA.frame);
}
