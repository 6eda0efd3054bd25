/* Copyright The west-tinyml contributors
 * SPDX-License-Identifier: Apache-2.0 */

/* A button on every block of code copies it; lines of a console without their prompts. */
"use strict";
document.addEventListener("DOMContentLoaded", () => {
	for (const block of document.querySelectorAll("div.highlight")) {
		const button = document.createElement("button");
		button.type = "button";
		button.className = "copy";
		button.textContent = "copy";
		button.addEventListener("click", async () => {
			const text = block.querySelector("pre").innerText;
			const commands = text.split("\n").filter((line) => line.startsWith("$ "));
			const copied = commands.length ? commands.map((line) => line.slice(2)).join("\n") : text.trimEnd();
			await navigator.clipboard.writeText(copied);
			button.textContent = "copied";
			setTimeout(() => { button.textContent = "copy"; }, 1500);
		});
		block.append(button);
	}
});
