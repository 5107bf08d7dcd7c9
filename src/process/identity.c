#include "process/identity.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

static bool
find_group(const char *name, gid_t *gid, struct err *err)
{
	struct group *group = getgrnam(name);

	if (group == NULL)
		return err_set(err, "group = %s: there is none", name);
	*gid = group->gr_gid;
	return true;
}

static bool
become(const char *what, const char *name, int rc, struct err *err)
{
	return rc == 0 ||
	    err_set(err, "%s = %s: %s", what, name, strerror(errno));
}

bool
identity_drop(const struct config_gateway *gateway, struct err *err)
{
	const struct passwd *user = NULL;
	gid_t gid = getgid();

	if (gateway->user == NULL && gateway->group == NULL)
		return true;
	if (gateway->user != NULL) {
		user = getpwnam(gateway->user);
		if (user == NULL)
			return err_set(
			    err, "user = %s: there is none", gateway->user);
		gid = user->pw_gid;
	}
	if (gateway->group != NULL && !find_group(gateway->group, &gid, err))
		return false;
	if (user != NULL && geteuid() == 0 &&
	    !become("user", gateway->user, initgroups(gateway->user, gid), err))
		return false;
	if (!become("group",
		gateway->group != NULL ? gateway->group : "(of user)",
		setresgid(gid, gid, gid), err))
		return false;
	return user == NULL ||
	    become("user", gateway->user,
		setresuid(user->pw_uid, user->pw_uid, user->pw_uid), err);
}
