//===- Math.h - Functions of fp32 that vectorize ----------------*- C++ -*-===//
//
// Branch-free, so that a loop that calls them becomes vector code, and without
// calls. Each is within two units in the last place of the exact value over the
// whole range, subnormal numbers, infinities and NaN included, but for sine and
// cosine of arguments beyond 2^30, where the reduction by pi has no digits
// left.
//
// exp, log, sine and cosine reduce their argument and evaluate polynomials of
// Cephes (S. Moshier, 1992); erf's were fitted for this file.
//
//===----------------------------------------------------------------------===//

#ifndef ESPALIER_LIB_TARGET_CPU_KERNELS_MATH_H
#define ESPALIER_LIB_TARGET_CPU_KERNELS_MATH_H

#include <cstdint>

#define INLINE __attribute__((always_inline)) inline

namespace espalier::kernels {

INLINE float asFloat(uint32_t bits) { return __builtin_bit_cast(float, bits); }
INLINE uint32_t asBits(float x) { return __builtin_bit_cast(uint32_t, x); }
INLINE float nan() { return asFloat(0x7FC00000u); }
INLINE float infinity() { return asFloat(0x7F800000u); }

/// 2^n for -126 <= n <= 127.
INLINE float powerOfTwo(int32_t n) {
  return asFloat(static_cast<uint32_t>(n + 127) << 23);
}

/// x * 2^n for |n| <= 252, rounded once.
INLINE float scaleByPower(float x, int32_t n) {
  int32_t half = n >> 1;
  return x * powerOfTwo(half) * powerOfTwo(n - half);
}

constexpr float log2OfE = 1.44269504088896341f;
constexpr float ln2High = 0.693359375f;
constexpr float ln2Low = -2.12194440e-4f;

/// (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2.
INLINE float expTail(float r) {
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  return p * r + 5.0000001201e-1f;
}

INLINE float exp(float x) {
  // Beyond these exp is infinite or zero; the comparisons let NaN pass.
  float t = x > 89.0f ? 89.0f : x;
  t = t < -104.0f ? -104.0f : t;
  float n = __builtin_rintf(t * log2OfE);
  float r = __builtin_fmaf(n, -ln2High, t);
  r = __builtin_fmaf(n, -ln2Low, r);
  float y = __builtin_fmaf(r * r, expTail(r), r) + 1.0f;
  // NaN has no integer: it comes back through y.
  int32_t power = static_cast<int32_t>(x == x ? n : 0.0f);
  return scaleByPower(y, power);
}

INLINE float exp2(float x) {
  float t = x > 129.0f ? 129.0f : x;
  t = t < -150.0f ? -150.0f : t;
  float n = __builtin_rintf(t);
  float r = (t - n) * 0.693147180559945309f;
  float y = __builtin_fmaf(r * r, expTail(r), r) + 1.0f;
  int32_t power = static_cast<int32_t>(x == x ? n : 0.0f);
  return scaleByPower(y, power);
}

INLINE float expm1(float x) {
  float t = x > 89.0f ? 89.0f : x;
  t = t < -104.0f ? -104.0f : t;
  float n = __builtin_rintf(t * log2OfE);
  float r = __builtin_fmaf(n, -ln2High, t);
  r = __builtin_fmaf(n, -ln2Low, r);
  float p = __builtin_fmaf(r * r, expTail(r), r);
  int32_t power = static_cast<int32_t>(x == x ? n : 0.0f);
  int32_t clamped = power < -126 ? -126 : power;
  // 2^n (exp(r) - 1) + (2^n - 1), with one more power taken last.
  float scale = powerOfTwo(clamped - 1);
  float half = __builtin_fmaf(p, scale, scale - 0.5f);
  float result = half * 2.0f;
  return n == 0.0f ? p : result;
}

struct LogParts {
  float mantissa; // log of the mantissa, which lies in [sqrt(1/2), sqrt(2))
  float exponent;
  float reduced; // mantissa - 1
};

/// For positive finite x.
INLINE LogParts splitLog(float x) {
  bool isSubnormal = x < 1.17549435e-38f;
  float scaled = isSubnormal ? x * 8388608.0f : x;
  float shift = isSubnormal ? -23.0f : 0.0f;
  uint32_t bits = asBits(scaled);
  // The exponent for which the mantissa is at least sqrt(1/2).
  int32_t n = static_cast<int32_t>(bits - 0x3F3504F3u) >> 23;
  float m = asFloat(bits - (static_cast<uint32_t>(n) << 23)) - 1.0f;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  float square = m * m;
  return {p * m * square - 0.5f * square, static_cast<float>(n) + shift, m};
}

/// The values of a logarithm at what has none.
INLINE float fixLog(float x, float y) {
  y = x == infinity() ? x : y;
  y = x == 0.0f ? -infinity() : y;
  return x < 0.0f || x != x ? nan() : y;
}

INLINE float log(float x) {
  LogParts parts = splitLog(x);
  float y = __builtin_fmaf(parts.exponent, ln2Low, parts.mantissa);
  y = __builtin_fmaf(parts.exponent, ln2High, parts.reduced + y);
  return fixLog(x, y);
}

INLINE float log2(float x) {
  LogParts parts = splitLog(x);
  constexpr float more = 0.44269504088896341f; // log2(e) - 1
  float y = __builtin_fmaf(parts.mantissa, more, parts.reduced * more);
  y = (y + parts.mantissa) + parts.reduced;
  return fixLog(x, y + parts.exponent);
}

INLINE float log1p(float x) {
  float u = 1.0f + x;
  // What the sum lost, to first order.
  float lost = (x - (u - 1.0f)) / u;
  float y = log(u) + (u == infinity() || u <= 0.0f ? 0.0f : lost);
  return x == 0.0f ? x : y;
}

INLINE float tanh(float x) {
  float magnitude = __builtin_fabsf(x);
  float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  float small = __builtin_fmaf(p * z, x, x);
  float large = 1.0f - 2.0f / (exp(2.0f * magnitude) + 1.0f);
  return magnitude < 0.625f ? small : __builtin_copysignf(large, x);
}

INLINE float erf(float x) {
  float magnitude = __builtin_fabsf(x);
  float z = x * x;
  float p = -1.0329880e-5f;
  p = p * z + 1.1464974e-4f;
  p = p * z - 8.5074775e-4f;
  p = p * z + 5.2223900e-3f;
  p = p * z - 2.6865833e-2f;
  p = p * z + 1.1283788e-1f;
  p = p * z - 3.7612639e-1f;
  p = p * z + 0.12837917f; // and 1 from x itself
  float small = __builtin_fmaf(p, x, x);
  // 1 - exp(-q(x)), with q = -log(erfc).
  float t = magnitude > 4.0f ? 4.0f : magnitude;
  float q = -1.6129040525960968e-06f;
  q = q * t + 4.5567138071300574e-05f;
  q = q * t - 5.925663809329539e-4f;
  q = q * t + 4.739245953082378e-3f;
  q = q * t - 2.636187338726002e-2f;
  q = q * t + 0.109973118526039f;
  q = q * t + 0.6319426628443218f;
  q = q * t + 1.1301633513982925f;
  q = q * t - 3.0238046302661454e-4f;
  float large = __builtin_copysignf(1.0f - exp(-q), x);
  float y = magnitude < 0.92f ? small : large;
  return x == x ? y : x;
}

struct Quadrant {
  float rest; // in [-pi/4, pi/4]
  int32_t index;
};

/// The argument less a multiple of pi / 2, reduced in fp64.
INLINE Quadrant reduceAngle(float x) {
  double n = __builtin_rint(double(x) * 0.63661977236758134308);
  double r = __builtin_fma(n, -1.57079632679489661923, double(x));
  r = __builtin_fma(n, -6.123233995736766e-17, r);
  // Arguments without a quadrant give NaN.
  double limited = n < 2.0e9 && n > -2.0e9 ? n : 0.0;
  return {static_cast<float>(r), static_cast<int32_t>(limited)};
}

INLINE float sinOfRest(float r) {
  float z = r * r;
  float p = -1.9515295891e-4f;
  p = p * z + 8.3321608736e-3f;
  p = p * z - 1.6666654611e-1f;
  return __builtin_fmaf(p * z, r, r);
}

INLINE float cosOfRest(float r) {
  float z = r * r;
  float p = 2.443315711809948e-5f;
  p = p * z - 1.388731625493765e-3f;
  p = p * z + 4.166664568298827e-2f;
  return __builtin_fmaf(z * z, p, __builtin_fmaf(-0.5f, z, 1.0f));
}

INLINE float sineOf(Quadrant quadrant, int32_t turn) {
  int32_t index = quadrant.index + turn;
  float s = sinOfRest(quadrant.rest), c = cosOfRest(quadrant.rest);
  float y = index & 1 ? c : s;
  return index & 2 ? -y : y;
}

INLINE float sin(float x) {
  float y = sineOf(reduceAngle(x), 0);
  // Keeps the sign of zero, and has none for infinity.
  y = __builtin_fabsf(x) < 1e-30f ? x : y;
  return __builtin_fabsf(x) < infinity() ? y : nan();
}

INLINE float cos(float x) {
  float y = sineOf(reduceAngle(x), 1);
  return __builtin_fabsf(x) < infinity() ? y : nan();
}

INLINE float sqrt(float x) { return __builtin_sqrtf(x); }

// fp64, where speed does not matter: libm's.
INLINE double exp(double x) { return __builtin_exp(x); }
INLINE double log(double x) { return __builtin_log(x); }
INLINE double sqrt(double x) { return __builtin_sqrt(x); }

} // namespace espalier::kernels

#endif // ESPALIER_LIB_TARGET_CPU_KERNELS_MATH_H
