/* Numbers below the least normal one. Processors that compute with them by microcode need many
   times as long; they can take them, and results like them, for 0 instead: Intel 64 and
   IA-32 Architectures Software Developer's Manual 1, 10.2.3; Arm Architecture Reference Manual, FPCR.FZ. */
#ifndef SYMCOMP_DENORMALS_H
#define SYMCOMP_DENORMALS_H

#include <stdint.h>

/* How the thread computes with floating-point numbers. */
typedef uint64_t FloatControl;

#if defined(__x86_64__)
enum { CAN_FLUSH_DENORMALS = 1, FLUSH_DENORMALS = 1 << 15 | 1 << 6 }; /* results; operands */
static inline FloatControl float_control(void)
{
    return __builtin_ia32_stmxcsr();
}
static inline void set_float_control(FloatControl control)
{
    __builtin_ia32_ldmxcsr((unsigned)control);
}
#elif defined(__aarch64__)
enum { CAN_FLUSH_DENORMALS = 1, FLUSH_DENORMALS = 1 << 24 };
static inline FloatControl float_control(void)
{
    FloatControl control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
}
static inline void set_float_control(FloatControl control)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
}
#else
enum { CAN_FLUSH_DENORMALS = 0, FLUSH_DENORMALS = 0 };
static inline FloatControl float_control(void)
{
    return 0;
}
static inline void set_float_control(FloatControl control)
{
    (void)control;
}
#endif

/* Take numbers below the least normal one for 0 from now on; return how the thread computed. */
static inline FloatControl flush_denormals(void)
{
    const FloatControl before = float_control();
    set_float_control(before | FLUSH_DENORMALS);
    return before;
}

#endif
