/* The head of CUDA sources: the words of C that NVRTC lacks, tables as arguments, faults. The
   emulator reads it, too; it defines __CUEMU__ and the words of CUDA. */
#ifndef __CUEMU__
#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615ULL
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#else
#include <cstdint>
#include <cmath>
#endif
#define __builtin_isunordered(x, y) (((x) != (x)) | ((y) != (y)))
#define __builtin_fma(x, y, z) fma(x, y, z)
#define __builtin_fmaf(x, y, z) fmaf(x, y, z)

/* Numbers of 16 bits, as they lie in memory; they are computed with as float. */
struct half_number {
    unsigned short bits;
    __device__ __forceinline__ half_number() {}
    __device__ __forceinline__ half_number(float x)
    {
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    }
    __device__ __forceinline__ half_number(double x)
    {
        asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(x));
    }
    __device__ __forceinline__ operator float() const
    {
        float x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
        return x;
    }
};
#define _Float16 half_number
#define ON_CARDS

/* How many blocks a multiprocessor shall have registers for. For the same code ptxas takes more of
   them from compute capability 10 on, and would spill some. */
#if __CUDA_ARCH__ >= 1000
#define BLOCKS(n) ((n) - 1)
#else
#define BLOCKS(n) (n)
#endif
#endif

#define INLINE static __device__ __forceinline__
#define HELPER static __device__ inline
#define RARE static __device__ __noinline__
#define SLOW static __device__ __noinline__
#define TABLE static __device__ const
/* There is no type wider than double. */
#define WIDE 0
#define WIDER double
#define W(name) name
#define WIDE_NUMBER(x) x
#define WIDE_SPLITTER 134217729.0

/* Neighbouring elements, which one access reads or writes. */
template <class T, int N> struct __align__(sizeof(T) * N) pack {
    T at[N];
};
template <int N, class T> INLINE pack<T, N> read_pack(const T *from)
{
#ifdef __CUEMU__
    cuemu::need_aligned(from, sizeof(pack<T, N>));
#endif
    return *(const pack<T, N> *)from;
}
template <class T, int N> INLINE void write_pack(T *to, const pack<T, N> &given)
{
#ifdef __CUEMU__
    cuemu::need_aligned(to, sizeof given);
#endif
    *(pack<T, N> *)to = given;
}

/* The value of the thread whose lane has another bit ``bit``, a power of two below ``lanes``; that many
   neighbours call this. */
template <int lanes, class T> INLINE T from_lane(T x, int bit)
{
#ifdef __CUEMU__
    typedef unsigned long long word;
#else
    typedef unsigned int word;
#endif
    constexpr int words = (int)((sizeof(T) + sizeof(word) - 1) / sizeof(word));
    const unsigned first = threadIdx.x % 32U / lanes * lanes;
    const unsigned together = (0xffffffffU >> (32 - lanes)) << first;
    word there[words] = {};
    memcpy(there, &x, sizeof x);
#pragma unroll
    for (int i = 0; i < words; i++)
        there[i] = __shfl_xor_sync(together, there[i], bit);
    memcpy(&x, there, sizeof x);
    return x;
}

/* Complex numbers, as they lie in memory: without constructors, so that shared memory may hold them. */
template <class T> struct __align__(sizeof(T) * 2) complex_number {
    T re, im;
};
INLINE float fused(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
INLINE double fused(double x, double y, double z) { return __builtin_fma(x, y, z); }
/* x y + z. */
template <class T>
INLINE complex_number<T> fused(complex_number<T> x, complex_number<T> y, complex_number<T> z)
{
    return {fused(-x.im, y.im, fused(x.re, y.re, z.re)), fused(x.im, y.re, fused(x.re, y.im, z.im))};
}
/* Products and sums that are rounded as those of NumPy. */
template <class T> INLINE complex_number<T> operator*(complex_number<T> x, complex_number<T> y)
{
    return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
template <class T> INLINE complex_number<T> operator+(complex_number<T> x, complex_number<T> y)
{
    return {x.re + y.re, x.im + y.im};
}
template <class T> INLINE bool operator!=(complex_number<T> x, complex_number<T> y)
{
    return x.re != y.re || x.im != y.im;
}

/* Add to an element that other threads add to at the same time. The sum modulo 2^64 of integers is that of their bits. */
template <class T> INLINE void add_to(T *to, T x) { atomicAdd(to, x); }
INLINE void add_to(int64_t *to, int64_t x) { atomicAdd((unsigned long long *)to, (unsigned long long)x); }
INLINE void add_to(uint64_t *to, uint64_t x) { atomicAdd((unsigned long long *)to, (unsigned long long)x); }

/* The first place from ``low`` on whose element is at least a number, in a sorted array that ends at ``high``. */
template <class T> INLINE int64_t first_from(const T *x, int64_t low, int64_t high, int64_t least)
{
    while (low < high) {
        const int64_t at = low + (high - low) / 2;
        if ((int64_t)x[at] < least)
            low = at + 1;
        else
            high = at;
    }
    return low;
}

/* Arguments: the addresses of arrays, bytes between neighbours along an axis, numbers of a formula. */
template <int N> struct addresses {
    char *at[N];
    __device__ __forceinline__ char *operator[](int i) const { return at[i]; }
    /* Let offsets that are marked by the highest bit, which no address has, be addresses. */
    __device__ __forceinline__ void settle(char *memory)
    {
#pragma unroll
        for (int i = 0; i < N; i++)
            if ((long long)at[i] < 0)
                at[i] = memory + (unsigned int)(unsigned long long)at[i];
    }
};
template <class Index, int N> struct steps {
    Index at[N];
    __device__ __forceinline__ Index operator[](int i) const { return at[i]; }
};
struct literal {
    unsigned long long word[2];
};
template <int N> struct literals {
    literal at[N];
    __device__ __forceinline__ char *operator[](int i) const { return (char *)(at + i); }
};

/* Words of parameters, among them those of functions that a kernel calls. */
template <int N> struct given_words {
    unsigned long long at[N];
    __device__ __forceinline__ unsigned long long operator[](int i) const { return at[i]; }
};
/* The parameters of a function, which begin at a word. */
template <class T, int N> INLINE T read_given(const given_words<N> &words, int place)
{
    constexpr int n = (int)((sizeof(T) + 7) / 8);
    unsigned long long read[n];
#pragma unroll
    for (int i = 0; i < n; i++)
        read[i] = words[place + i];
    T found;
    memcpy(&found, read, sizeof found);
    return found;
}
/* Wait for the first threads of a block, a multiple of 32; the others do not call this. */
#ifndef __CUEMU__
#define wait_for_first(threads) asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory")
#endif

/* The first failure: the ticket of the kernel, the index and the length. The host reads it when it
   waits. */
struct fault {
    unsigned long long ticket, unused;
    long long value, bound;
};

static __device__ __noinline__ void report(fault *words, unsigned long long ticket, long long value,
                                           long long bound)
{
    if (atomicCAS(&words->ticket, 0ULL, ticket) == 0ULL) {
        words->value = value;
        words->bound = bound;
    }
}
