/* One pool of threads, for all that is shared: kernels, convolutions, pools of images.

   A job is a number of parts, done by the thread that shares it and by workers that have nothing else
   to do. Workers start when a job first asks for them, and live as long as the process; they sleep
   while there are no jobs. Parts never take the GIL. Any number of threads may share jobs at once; a
   job within a part of another is done by the thread that has this part. Workers flush denormal
   numbers if the thread that shares the job does. A process that was forked begins without workers. */

#ifndef SYMCOMP_THREAD_POOL_H
#define SYMCOMP_THREAD_POOL_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

#include "denormals.h"

enum {
    MOST_THREADS = 256,
    LOOKS = 1000,               /* how often a thread looks for work before it sleeps: some 20 us */
    STACK_OF_WORKER = 1 << 23,  /* kernels keep their blocks of elements there */
};

/* Do one part; `worker` is below the number of threads, and no other has it at the time. */
typedef void (*Part)(void *work, int64_t part, int worker);

/* The parts from `next` to before `end`, which one of the threads does first, in a line of the cache. */
typedef struct {
    int64_t next, end, padding[6];
} PartsOfWorker;

typedef struct Job {
    Part part;
    void *work;
    FloatControl control;
    int threads, joined, busy;  /* wanted; that have come; workers that are still at it */
    struct Job *following;
    PartsOfWorker own[MOST_THREADS];
} Job;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more, done;
    Job *jobs;                  /* jobs that workers may join */
    int workers, asleep, seats; /* started; waiting for `more`; workers that jobs still want */
    int prepared;
} thread_pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
                 .more = PTHREAD_COND_INITIALIZER,
                 .done = PTHREAD_COND_INITIALIZER};

/* Whether this thread does a part. */
static __thread int within_part;

static inline void look_again(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Do parts: the thread's own, then parts of other threads that have not begun. */
static void do_parts(Job *job, int worker)
{
    within_part = 1;
    for (int i = 0; i < job->threads; i++) {
        PartsOfWorker *own = &job->own[(worker + i) % job->threads];
        for (;;) {
            const int64_t part = __atomic_fetch_add(&own->next, 1, __ATOMIC_RELAXED);
            if (part >= own->end)
                break;
            job->part(job->work, part, worker);
        }
    }
    within_part = 0;
}

/* Wait for a job and join it; the lock is held before and after. */
static Job *next_job(int *worker)
{
    for (;;) {
        for (Job *job = thread_pool.jobs; job; job = job->following)
            if (job->joined < job->threads) {
                *worker = job->joined++;
                job->busy++;
                __atomic_fetch_sub(&thread_pool.seats, 1, __ATOMIC_RELAXED);
                return job;
            }
        pthread_mutex_unlock(&thread_pool.lock);
        for (int i = 0; i < LOOKS && !__atomic_load_n(&thread_pool.seats, __ATOMIC_RELAXED); i++)
            look_again();
        pthread_mutex_lock(&thread_pool.lock);
        if (!thread_pool.seats) {
            thread_pool.asleep++;
            pthread_cond_wait(&thread_pool.more, &thread_pool.lock);
            thread_pool.asleep--;
        }
    }
}

static void *work_for_pool(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&thread_pool.lock);
    for (;;) {
        int worker;
        Job *job = next_job(&worker);
        pthread_mutex_unlock(&thread_pool.lock);
        set_float_control(job->control);
        do_parts(job, worker);
        pthread_mutex_lock(&thread_pool.lock);
        /* The job may be freed once no thread is busy with it. */
        if (__atomic_sub_fetch(&job->busy, 1, __ATOMIC_RELEASE) == 0)
            pthread_cond_broadcast(&thread_pool.done);
    }
    return 0;
}

/* A forked process has no workers, and locks may be in any state. */
static void forget_threads(void)
{
    pthread_mutex_init(&thread_pool.lock, 0);
    pthread_cond_init(&thread_pool.more, 0);
    pthread_cond_init(&thread_pool.done, 0);
    thread_pool.jobs = 0;
    thread_pool.workers = thread_pool.asleep = thread_pool.seats = 0;
}

/* Start workers up to `wanted`, or until no more can be had; signals are for other threads. */
static void start_workers(int wanted)
{
    pthread_attr_t attributes;
    sigset_t every, before;
    if (thread_pool.workers >= wanted || pthread_attr_init(&attributes))
        return;
    if (!thread_pool.prepared)
        thread_pool.prepared = !pthread_atfork(0, 0, forget_threads);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_OF_WORKER);
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    while (thread_pool.prepared && thread_pool.workers < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, work_for_pool, 0))
            break;
        thread_pool.workers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, 0);
    pthread_attr_destroy(&attributes);
}

/* Let workers join a job; the lock is held. */
static void open_job(Job *job)
{
    const int wanted = job->threads - 1;
    start_workers(wanted);
    job->following = thread_pool.jobs;
    thread_pool.jobs = job;
    __atomic_fetch_add(&thread_pool.seats, wanted, __ATOMIC_RELAXED);
    for (int i = 0; i < wanted && i < thread_pool.asleep; i++)
        pthread_cond_signal(&thread_pool.more);
}

/* Let no more workers join a job; the lock is held. */
static void close_job(Job *job)
{
    Job **link = &thread_pool.jobs;
    while (*link != job)
        link = &(*link)->following;
    *link = job->following;
    __atomic_fetch_sub(&thread_pool.seats, job->threads - job->joined, __ATOMIC_RELAXED);
}

/* Open a job to at most `threads` threads. The calling thread is worker 0 and takes part itself. */
static void begin_job(Job *job, Part part, void *work, int64_t parts, int threads)
{
    job->part = part, job->work = work, job->threads = threads, job->joined = 1, job->busy = 0;
    job->control = float_control();
    for (int i = 0; i < threads; i++) {
        job->own[i].next = parts * i / threads;
        job->own[i].end = parts * (i + 1) / threads;
    }
    pthread_mutex_lock(&thread_pool.lock);
    open_job(job);
    pthread_mutex_unlock(&thread_pool.lock);
}

/* Close a job and wait for the workers that joined it. */
static void end_job(Job *job)
{
    pthread_mutex_lock(&thread_pool.lock);
    close_job(job);
    pthread_mutex_unlock(&thread_pool.lock);
    for (int i = 0; i < LOOKS && __atomic_load_n(&job->busy, __ATOMIC_ACQUIRE); i++)
        look_again();
    if (!__atomic_load_n(&job->busy, __ATOMIC_ACQUIRE))
        return;
    pthread_mutex_lock(&thread_pool.lock);
    while (__atomic_load_n(&job->busy, __ATOMIC_ACQUIRE))
        pthread_cond_wait(&thread_pool.done, &thread_pool.lock);
    pthread_mutex_unlock(&thread_pool.lock);
}

/* Do all parts, in any order, by at most `threads` threads, of which the calling one is one. */
static void share(Part part, void *work, int64_t parts, int threads)
{
    Job job;
    if (threads > MOST_THREADS)
        threads = MOST_THREADS;
    if (threads > parts)
        threads = (int)parts;
    if (threads <= 1 || within_part) {
        for (int64_t i = 0; i < parts; i++)
            part(work, i, 0);
        return;
    }
    begin_job(&job, part, work, parts, threads);
    do_parts(&job, 0);
    end_job(&job);
}

/* The interface of kernels to the pool: as in nest.h of symcomp/codegen. */
typedef struct {
    int threads;
    void (*run)(Part part, void *work, int64_t parts, int threads);
    const void **order;
    void *(*take)(void *owner, size_t bytes);
    void *owner;
    int64_t *bytes;
    char *memory;
} Team;

#endif
