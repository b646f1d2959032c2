/* Between finding a dead socket file and putting a new one in its place another start
 * could do the same, and the second would unlink the first one's live socket. So the
 * folder is locked (flock(2) on it, no file of ours) for the time of a take-over or a
 * removal. */
#include "process/listen_unix.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "process/units.h"

#define LOCK_TRIES 200 /* with the pause: 2 s */
#define LOCK_PAUSE_NS 10000000

/* Opens and locks the folder of path. Close the descriptor to let go. */
static bool lock_folder(const char *path, int *ret_fd, struct weir_error *ret_error)
{
    char folder[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    if (!slash)
        strcpy(folder, ".");
    else if (len == 0)
        strcpy(folder, "/");
    else
        snprintf(folder, sizeof folder, "%.*s", (int)len, path);

    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return weir__error(
            ret_error, "unix:%s: the folder %s: %s", path, folder, strerror(errno));
    for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || i == LOCK_TRIES) {
            weir__error(ret_error,
                        "unix:%s: the folder %s can't be locked: %s",
                        path,
                        folder,
                        strerror(errno));
            close(fd);
            return false;
        }
        nanosleep(&(struct timespec){ .tv_nsec = LOCK_PAUSE_NS }, NULL);
    }
    *ret_fd = fd;
    return true;
}

/* Whether nobody listens on the socket file. */
static bool is_dead(const struct sockaddr_un *address, struct weir_error *ret_error)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return weir__error(ret_error, "unix:%s: %s", address->sun_path, strerror(errno));
    int why =
        connect(fd, (const struct sockaddr *)address, sizeof *address) < 0 ? errno : 0;
    close(fd);
    if (why == ECONNREFUSED || why == ENOENT)
        return true;
    /* A full backlog (EAGAIN) or a socket of another kind (EPROTOTYPE) is somebody's. */
    if (why == 0 || why == EAGAIN || why == EPROTOTYPE)
        return weir__error(ret_error, "unix:%s: already in use", address->sun_path);
    return weir__error(ret_error,
                       "unix:%s: can't tell whether somebody listens there: %s",
                       address->sun_path,
                       strerror(why));
}

/* Makes way at the path: nothing there, or a dead socket, which is removed. */
static bool make_way(const struct sockaddr_un *address, struct weir_error *ret_error)
{
    const char *path = address->sun_path;
    struct stat stat;
    if (lstat(path, &stat) < 0) {
        if (errno == ENOENT)
            return true;
        return weir__error(ret_error, "unix:%s: %s", path, strerror(errno));
    }
    if (!S_ISSOCK(stat.st_mode))
        return weir__error(ret_error, "unix:%s: exists and is not a socket", path);
    if (!is_dead(address, ret_error))
        return false;
    if (unlink(path) < 0 && errno != ENOENT)
        return weir__error(ret_error,
                           "unix:%s: a dead socket that can't be removed: %s",
                           path,
                           strerror(errno));
    return true;
}

/* User and group as numbers; -1 leaves it. */
static bool find_owner(const struct weir__options *options,
                       uid_t *ret_uid,
                       gid_t *ret_gid,
                       struct weir_error *ret_error)
{
    uid_t uid = (uid_t)-1;
    gid_t gid = (gid_t)-1;
    uint64_t number = 0;
    if (options->socket_owner) {
        const struct passwd *user = getpwnam(options->socket_owner);
        if (user)
            uid = user->pw_uid;
        else if (weir__unit_parse(WEIR__UNIT_COUNT, options->socket_owner, &number) &&
                 number < (uid_t)-1)
            uid = (uid_t)number;
        else
            return weir__error(
                ret_error, "--socket-owner: no user \"%s\"", options->socket_owner);
    }
    if (options->socket_group) {
        const struct group *group = getgrnam(options->socket_group);
        if (group)
            gid = group->gr_gid;
        else if (weir__unit_parse(WEIR__UNIT_COUNT, options->socket_group, &number) &&
                 number < (gid_t)-1)
            gid = (gid_t)number;
        else
            return weir__error(
                ret_error, "--socket-group: no group \"%s\"", options->socket_group);
    }
    *ret_uid = uid;
    *ret_gid = gid;
    return true;
}

/* Binds with the mode from the first moment on (umask: nothing else runs yet), then gives
 * it away, then listens: before that nobody can connect. */
static bool bind_and_listen(int fd,
                            const struct weir__options *options,
                            const struct sockaddr_un *address,
                            struct weir_error *ret_error)
{
    const char *path = address->sun_path;
    uid_t uid = (uid_t)-1;
    gid_t gid = (gid_t)-1;
    if (!find_owner(options, &uid, &gid, ret_error))
        return false;
    mode_t before = umask(0777 & ~options->socket_mode);
    int bound = bind(fd, (const struct sockaddr *)address, sizeof *address);
    int why = errno;
    umask(before);
    if (bound < 0)
        return weir__error(ret_error,
                           "unix:%s: %s",
                           path,
                           why == EADDRINUSE ? "already in use" : strerror(why));
    if ((uid != (uid_t)-1 || gid != (gid_t)-1) && lchown(path, uid, gid) < 0)
        weir__error(ret_error, "unix:%s: can't be given away: %s", path, strerror(errno));
    else if (listen(fd, WEIR__LISTEN_BACKLOG) < 0)
        weir__error(ret_error, "unix:%s: %s", path, strerror(errno));
    else
        return true;
    unlink(path);
    return false;
}

bool weir__listen_unix_open(const struct weir__options *options,
                            const struct sockaddr_un *address,
                            int *ret_fd,
                            struct weir__listen_file *ret_file,
                            struct weir_error *ret_error)
{
    struct stat stat;
    int folder = -1;
    if (!lock_folder(address->sun_path, &folder, ret_error))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool good = fd >= 0;
    if (!good)
        weir__error(ret_error, "unix:%s: %s", address->sun_path, strerror(errno));
    good = good && make_way(address, ret_error) &&
           bind_and_listen(fd, options, address, ret_error);
    if (good && lstat(address->sun_path, &stat) < 0)
        good = weir__error(ret_error, "unix:%s: %s", address->sun_path, strerror(errno));
    close(folder);
    if (!good) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    *ret_fd = fd;
    memcpy(ret_file->path, address->sun_path, sizeof ret_file->path);
    ret_file->device = stat.st_dev;
    ret_file->inode = stat.st_ino;
    return true;
}

void weir__listen_unix_remove(struct weir__listen_file *file)
{
    struct stat stat;
    struct weir_error error = { "" };
    int folder = -1;
    /* Without the lock the file stays: a dead socket is replaced by the next start. */
    if (file->path[0] == '\0' || !lock_folder(file->path, &folder, &error))
        return;
    if (lstat(file->path, &stat) == 0 && stat.st_dev == file->device &&
        stat.st_ino == file->inode)
        unlink(file->path);
    close(folder);
    file->path[0] = '\0';
}
