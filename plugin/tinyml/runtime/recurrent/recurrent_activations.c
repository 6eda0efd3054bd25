/* Copyright The west-tinyml contributors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <tinyml/maths.h>
#include <tinyml/recurrent.h>

float tinyml_act_sigmoid(float x, float alpha, float beta)
{
	(void)alpha;
	(void)beta;
	return 1.0f / (1.0f + tinyml_expf(-x));
}

float tinyml_act_tanh(float x, float alpha, float beta)
{
	(void)alpha;
	(void)beta;
	return tinyml_tanhf(x);
}

float tinyml_act_relu(float x, float alpha, float beta)
{
	(void)alpha;
	(void)beta;
	return x > 0.0f ? x : 0.0f;
}

float tinyml_act_affine(float x, float alpha, float beta)
{
	return alpha * x + beta;
}

float tinyml_act_leaky_relu(float x, float alpha, float beta)
{
	(void)beta;
	return x >= 0.0f ? x : alpha * x;
}

float tinyml_act_thresholded_relu(float x, float alpha, float beta)
{
	(void)beta;
	return x >= alpha ? x : 0.0f;
}

float tinyml_act_scaled_tanh(float x, float alpha, float beta)
{
	return alpha * tinyml_tanhf(beta * x);
}

float tinyml_act_hard_sigmoid(float x, float alpha, float beta)
{
	const float y = alpha * x + beta;

	return y < 0.0f ? 0.0f : (y > 1.0f ? 1.0f : y);
}

float tinyml_act_elu(float x, float alpha, float beta)
{
	(void)beta;
	return x >= 0.0f ? x : alpha * tinyml_expm1f(x);
}

float tinyml_act_softsign(float x, float alpha, float beta)
{
	(void)alpha;
	(void)beta;
	return x / (1.0f + tinyml_fabsf(x));
}

float tinyml_act_softplus(float x, float alpha, float beta)
{
	(void)alpha;
	(void)beta;
	return tinyml_logf(1.0f + tinyml_expf(x));
}
