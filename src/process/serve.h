/*
 * serve: the gateway in the foreground, from start to stop.
 */
#ifndef SLUICE_SERVE_H
#define SLUICE_SERVE_H

/* Returns the exit code: 0, or 78 for a configuration that does not stand. */
int serve(const char *config_file);

#endif
