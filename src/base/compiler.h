/*
 * compiler: what only some compilers know.
 */
#ifndef SLUICE_COMPILER_H
#define SLUICE_COMPILER_H

/*
 * A large local array that is written before it is read: it is not to be
 * cleared at each call, as -ftrivial-auto-var-init does.
 */
#if defined(__has_attribute)
#if __has_attribute(uninitialized)
#define UNINITIALIZED __attribute__((uninitialized))
#endif
#endif
#ifndef UNINITIALIZED
#define UNINITIALIZED
#endif

#endif
