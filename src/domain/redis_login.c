#include "domain/redis_login.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

void
redis_login_init(struct redis_login *l, const struct redis_address *address)
{
	*l = (struct redis_login){ .address = *address };
	drift_init(&l->drift);
	pthread_mutex_init(&l->lock, NULL);
}

static void
free_secret(char *text)
{
	if (text != NULL)
		explicit_bzero(text, strlen(text));
	free(text);
}

void
redis_login_release(struct redis_login *l)
{
	drift_release(&l->drift);
	pthread_mutex_destroy(&l->lock);
	free(l->username);
	free_secret(l->password);
	free(l->prefix);
}

static char *
copy_text(const char *text)
{
	return text != NULL ? strdup(text) : NULL;
}

static bool
replace_text(char **to, const char *text)
{
	char *copy = copy_text(text);

	if (text != NULL && copy == NULL)
		return false;
	free_secret(*to);
	*to = copy;
	return true;
}

bool
redis_login_configure(struct redis_login *l, const char *username,
    const char *password, const char *prefix, int64_t connect_timeout_us)
{
	bool ok;

	pthread_mutex_lock(&l->lock);
	ok = replace_text(&l->username, username) &&
	    replace_text(&l->password, password) &&
	    replace_text(&l->prefix, prefix);
	l->connect_timeout_us = connect_timeout_us;
	pthread_mutex_unlock(&l->lock);
	return ok;
}

/* With copies, as resolving may take long: nobody is to wait for it. */
struct redis_session *
redis_login_start(struct redis_login *l, struct err *err)
{
	struct redis_session_settings settings = {
		.address = l->address,
		.drift = &l->drift,
		.untried = l->untried,
	};
	struct redis_session *session;
	char *username, *password, *prefix;
	int64_t deadline_us;

	pthread_mutex_lock(&l->lock);
	settings.username = username = copy_text(l->username);
	settings.password = password = copy_text(l->password);
	settings.prefix = prefix = copy_text(l->prefix);
	deadline_us = clock_mono_us() + l->connect_timeout_us;
	pthread_mutex_unlock(&l->lock);
	session = redis_session_start(&settings, deadline_us, err);
	free(username);
	free_secret(password);
	free(prefix);
	return session;
}
