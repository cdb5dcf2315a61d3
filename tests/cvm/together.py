"""Threads of tests."""

import threading


def together(n_threads, work):
    """Run ``work(k)`` in threads; raise the first of their exceptions."""
    problems = []

    def run(k):
        try:
            work(k)
        except BaseException as problem:  # noqa: BLE001
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
