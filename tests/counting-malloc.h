// SPDX-License-Identifier: MIT
#pragma once
// Counts allocations of the whole program, GLib's too: malloc(), calloc() and realloc() in front of the C
// library's. Include it in one source file of a program. A sanitizer has an allocator of its own: then
// NJ_COUNTS_ALLOCATIONS is not defined. Read the counter into a variable before asserting: Check allocates,
// too.

#if defined __GLIBC__ && !defined __SANITIZE_ADDRESS__
#define NJ_COUNTS_ALLOCATIONS

#include <stddef.h>

static unsigned nj_n_allocations;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *pointer, size_t size);

void *malloc(size_t size)
{
    nj_n_allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    nj_n_allocations++;
    return __libc_calloc(n, size);
}

void *realloc(void *pointer, size_t size)
{
    nj_n_allocations++;
    return __libc_realloc(pointer, size);
}
#endif
