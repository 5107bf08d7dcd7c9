/*
 * hello: the application that `make bench` measures against. libfcgi, 16
 * threads, a short answer, no work: what is between it and the client is all
 * there is to see.
 */
#include <fcgiapp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

#define THREADS 16

static void *
serve(void *unused)
{
	FCGX_Request request;

	(void)unused;
	FCGX_InitRequest(&request, 0, 0);
	while (FCGX_Accept_r(&request) == 0) {
		FCGX_PutS(
		    "Content-Type: text/plain\r\n\r\nHello.\n", request.out);
		FCGX_Finish_r(&request);
	}
	return NULL;
}

int
main(void)
{
	pthread_t thread[THREADS];

	if (FCGX_Init() != 0)
		return 1;
	signal(SIGTERM, SIG_DFL); /* which FCGX_Init took to end by and by */
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, serve, NULL) != 0)
			return 1;
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
