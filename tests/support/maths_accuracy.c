/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The largest error of each function of <tinyml/maths.h>, in units in the last place, against libm
 * in double. Arguments: every STEP-th float, and for functions of two numbers pairs of
 * pseudo-random ones. Prints "name ulp argument [argument]" per function. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tinyml/maths.h>

static double error_in_ulp(float found, double exact)
{
	const float nearest = (float)exact;
	int exponent;

	if (isnan(nearest) || isnan(found)) {
		return isnan(nearest) && isnan(found) ? 0.0 : HUGE_VAL;
	}
	if (isinf(nearest) || isinf(found)) {
		/* the largest float instead of infinity, or the other way around, is one step */
		return nearest == found                        ? 0.0
		       : nextafterf(found, nearest) == nearest ? 1.0
							       : HUGE_VAL;
	}
	if (found == 0.0f && nearest == 0.0f && exact == 0.0) {
		return signbit(found) == signbit(nearest) ? 0.0 : HUGE_VAL;
	}
	frexp(exact, &exponent);
	exponent = exponent - 24 < -149 ? -149 : exponent - 24;
	return fabs((double)found - exact) / ldexp(1.0, exponent);
}

struct unary {
	const char *name;
	float (*own)(float);
	double (*exact)(double);
};

struct binary {
	const char *name;
	float (*own)(float, float);
	double (*exact)(double, double);
};

#define OWN(function) {#function, tinyml_##function##f, function}

static const struct unary functions[] = {
	OWN(exp),  OWN(expm1), OWN(log),   OWN(log1p), OWN(log10), OWN(sin),
	OWN(cos),  OWN(tan),   OWN(asin),  OWN(acos),  OWN(atan),  OWN(sinh),
	OWN(cosh), OWN(tanh),  OWN(asinh), OWN(acosh), OWN(atanh), OWN(erf),
	OWN(sqrt), OWN(floor), OWN(ceil),  OWN(rint),  OWN(trunc), OWN(fabs),
};

static const struct binary pairs[] = {
	OWN(pow),
	OWN(atan2),
	OWN(fmod),
	OWN(copysign),
};

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static void check_unary(const struct unary *f, uint32_t step)
{
	double worst = 0.0;
	float where = 0.0f;

	for (uint64_t bits = 0; bits < (1ull << 32); bits += step) {
		const float x = tinyml_float_of_bits((uint32_t)bits);
		const double error = error_in_ulp(f->own(x), f->exact((double)x));

		if (error > worst) {
			worst = error;
			where = x;
		}
	}
	printf("%s %.3f %.9g\n", f->name, worst, (double)where);
}

static void check_binary(const struct binary *f, uint32_t step)
{
	static const float special[] = {0.0f,       -0.0f,      1.0f,     -1.0f,   2.0f,
					-2.0f,      3.0f,       -3.0f,    0.5f,    INFINITY,
					-INFINITY,  (float)NAN, 1.0e-40f, 3.4e38f, -3.4e38f,
					8388609.0f, 16777215.0f};
	const size_t specials = sizeof(special) / sizeof(special[0]);
	uint32_t state = 1;
	double worst = 0.0;
	float where[2] = {0.0f, 0.0f};
	const uint64_t count = (1ull << 32) / step;

	for (uint64_t i = 0; i < count; i++) {
		float x = tinyml_float_of_bits(next_random(&state));
		float y = tinyml_float_of_bits(next_random(&state));

		if (i < specials * specials) {
			x = special[i / specials];
			y = special[i % specials];
		} else if (i % 4 == 1) { /* powers that are neither 0 nor infinite */
			y = (float)(((double)(int32_t)next_random(&state) / 2147483648.0) * 88.0 /
				    fabs(log(fabs((double)x))));
		} else if (i % 4 == 2) { /* bases near 1, large exponents */
			x = 1.0f + (float)(int32_t)next_random(&state) / 2147483648.0f / 512.0f;
			y = (float)(((double)(int32_t)next_random(&state) / 2147483648.0) * 88.0 /
				    fabs(log(fabs((double)x))));
		} else if (i % 4 == 3) {
			y = x * (float)(int32_t)next_random(&state) / 2147483648.0f;
		}
		const double error = error_in_ulp(f->own(x, y), f->exact((double)x, (double)y));

		if (error > worst) {
			worst = error;
			where[0] = x;
			where[1] = y;
		}
	}
	printf("%s %.3f %.9g %.9g\n", f->name, worst, (double)where[0], (double)where[1]);
}

int main(int argc, char **argv)
{
	const uint32_t step = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 4999;

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (argc < 3 || strcmp(argv[2], functions[i].name) == 0) {
			check_unary(&functions[i], step);
		}
	}
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (argc < 3 || strcmp(argv[2], pairs[i].name) == 0) {
			check_binary(&pairs[i], step);
		}
	}
	return 0;
}
