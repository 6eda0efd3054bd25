/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Runs many models, each in a process of its own, so that one that crashes takes no other with it.
 *
 * Model number i reads i.in (a word: how many samples; then the inputs of each) and writes i.out
 * (the outputs of each); what a sanitizer says about it goes to i.err. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tinyml/tinyml.h>

extern const struct tinyml_model *const batch_models[];
extern const int batch_count;

static FILE *open_file(int index, const char *kind, const char *mode)
{
	char path[32];

	snprintf(path, sizeof(path), "%d.%s", index, kind);
	FILE *file = fopen(path, mode);

	if (file == NULL) {
		perror(path);
		_exit(2);
	}
	return file;
}

/* Feed an input in parts of different sizes, of which none but the last ends at the end of a buffer
 * that a sanitizer guards; what is not allowed, before and after. */
static void feed(const struct tinyml_model *model, FILE *in, size_t part)
{
	const size_t bytes = model->inputs[0].bytes;
	uint8_t *input = malloc(bytes + 1);

	if (input == NULL || fread(input, 1, bytes, in) != bytes) {
		_exit(3);
	}
	if (model->feed(input, 1) != TINYML_EINVAL || model->begin() != 0 ||
	    model->feed(NULL, 1) != TINYML_EINVAL ||
	    model->feed(input, bytes + 1) != TINYML_EINVAL ||
	    (bytes > 1 && model->feed(input, bytes - 1) != 1) || model->begin() != 0 ||
	    model->feed(input, 0) != (int)bytes) {
		_exit(5);
	}
	for (size_t at = 0; at < bytes; part = part * 5 % 641 + 1) {
		const size_t size = part < bytes - at ? part : bytes - at;
		uint8_t *copy = malloc(size);

		if (copy == NULL) {
			_exit(3);
		}
		memcpy(copy, &input[at], size);
		at += size;
		if (model->feed(copy, size) != (int)(bytes - at)) {
			_exit(5);
		}
		free(copy);
	}
	if (model->feed(input, 0) != TINYML_EINVAL) {
		_exit(5);
	}
	free(input);
}

static void run_one(int index)
{
	const struct tinyml_model *model = batch_models[index];
	FILE *in = open_file(index, "in", "rb");
	FILE *out = open_file(index, "out", "wb");
	uint32_t samples = 0;

	if (fread(&samples, sizeof(samples), 1, in) != 1) {
		_exit(3);
	}
	if (model->reset != NULL) {
		model->reset();
	}
	for (uint32_t s = 0; s < samples; s++) {
		if (model->feed != NULL) {
			feed(model, in, s + 1u);
		}
		for (uint8_t i = 0; i < model->input_count && model->run != NULL; i++) {
			if (fread(model->inputs[i].data, 1, model->inputs[i].bytes, in) !=
			    model->inputs[i].bytes) {
				_exit(3);
			}
		}
		if (model->run != NULL && model->run() != 0) {
			_exit(4);
		}
		for (uint8_t i = 0; i < model->output_count; i++) {
			fwrite(model->outputs[i].data, 1, model->outputs[i].bytes, out);
		}
	}
	fclose(out);
	fclose(in);
}

int main(void)
{
	for (int i = 0; i < batch_count; i++) {
		const pid_t child = fork();

		if (child == 0) {
			char path[32];

			snprintf(path, sizeof(path), "%d.err", i);
			if (freopen(path, "w", stderr) == NULL) {
				_exit(2);
			}
			run_one(i);
			_exit(0);
		}
		int status = 0;

		if (child < 0 || waitpid(child, &status, 0) < 0) {
			perror("batch");
			return 1;
		}
		printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	}
	return 0;
}
