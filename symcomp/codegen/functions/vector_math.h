/* Functions of the C library with vector versions whose errors are below 2 ulp. */
#if __has_include(<features.h>)
#include <features.h>
#endif
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35)
#pragma omp declare simd notinbranch
extern double acos(double);
#pragma omp declare simd notinbranch
extern float acosf(float);
#pragma omp declare simd notinbranch
extern double acosh(double);
#pragma omp declare simd notinbranch
extern float acoshf(float);
#pragma omp declare simd notinbranch
extern double asinh(double);
#pragma omp declare simd notinbranch
extern float asinhf(float);
#pragma omp declare simd notinbranch
extern double atanh(double);
#pragma omp declare simd notinbranch
extern float atanhf(float);
#pragma omp declare simd notinbranch
extern double cosh(double);
#pragma omp declare simd notinbranch
extern double sinh(double);
#pragma omp declare simd notinbranch
extern float sinhf(float);
#pragma omp declare simd notinbranch
extern double erfc(double);
#pragma omp declare simd notinbranch
extern float erfcf(float);
#pragma omp declare simd notinbranch
extern double exp2(double);
#pragma omp declare simd notinbranch
extern float exp2f(float);
#pragma omp declare simd notinbranch
extern double log10(double);
#pragma omp declare simd notinbranch
extern double log2(double);
#pragma omp declare simd notinbranch
extern double pow(double, double);
#pragma omp declare simd notinbranch
extern float cosf(float);
#pragma omp declare simd notinbranch
extern float sinf(float);
#endif
#endif
