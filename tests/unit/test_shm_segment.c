#include "store/shm_segment.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/shm.h"
#include "support/asks.h"

static struct weir__shm_segment made(size_t entries)
{
    struct weir__shm_segment segment;
    struct weir_error error = { { 0 } };
    cr_assert(
        weir__shm_segment_create(entries, NULL, &segment, &error), "%s", error.text);
    return segment;
}

Test(shm_segment, holds_at_least_the_entries_that_were_asked_for)
{
    static const size_t asked[] = { 1, 15, 16, 1000 };
    for (int i = 0; i < 4; i++) {
        struct weir__shm_segment segment = made(asked[i]);
        cr_expect_geq(segment.header->buckets * WEIR__SHM_WAYS, asked[i]);
        cr_expect_lt(segment.header->buckets * WEIR__SHM_WAYS, asked[i] + WEIR__SHM_WAYS);
        weir__shm_segment_destroy(&segment);
    }
    struct weir__shm_segment segment = made(0);
    cr_expect_geq(segment.header->buckets * WEIR__SHM_WAYS, 262144);
    weir__shm_segment_destroy(&segment);
}

Test(shm_segment, can_not_be_shrunk_by_who_gets_the_descriptor)
{
    struct weir__shm_segment segment = made(1000);
    cr_expect_eq(ftruncate(segment.fd, 4096), -1);
    cr_expect_eq(errno, EPERM);
    cr_expect_eq(fcntl(segment.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    weir__shm_segment_destroy(&segment);
}

Test(shm_segment, has_a_secret_of_its_own_each_time)
{
    struct weir__shm_segment first = made(15), second = made(15);
    cr_expect_neq(memcmp(first.header->key, second.header->key, 16), 0);
    cr_expect_eq(memcmp(first.header->boot_id, second.header->boot_id, 16), 0);
    weir__shm_segment_destroy(&first);
    weir__shm_segment_destroy(&second);
}

Test(shm_segment, says_at_once_that_more_was_asked_for_than_there_is)
{
    static const size_t asked[] = { SIZE_MAX,
                                    WEIR__SHM_ENTRIES_MAX + 1,
                                    WEIR__SHM_ENTRIES_MAX };
    for (int i = 0; i < 3; i++) {
        struct weir__shm_segment segment = { .fd = -7 };
        struct weir_error error = { { 0 } };
        cr_expect_not(weir__shm_segment_create(asked[i], NULL, &segment, &error));
        cr_expect_neq(strstr(error.text, "shared memory: "), NULL);
        cr_expect_eq(segment.fd, -7);
    }
}

Test(shm_segment, recognises_what_another_program_wrote)
{
    struct weir__shm_segment segment = made(15);
    struct weir__shm_header good = *segment.header;
    cr_expect(weir__shm_segment_check(&segment, NULL));
    for (size_t at = 0; at < sizeof good; at++) {
        *segment.header = good;
        ((unsigned char *)segment.header)[at] ^= 1;
        cr_expect_not(weir__shm_segment_check(&segment, NULL), "byte %zu", at);
    }
    *segment.header = good;
    segment.bytes += 4096;
    cr_expect_not(weir__shm_segment_check(&segment, NULL));
    segment.bytes -= 4096;
    weir__shm_segment_destroy(&segment);
}

/* A folder of the test's own. */
static void make_folder(char *ret_path, size_t bytes)
{
    const char *base = getenv("TMPDIR");
    snprintf(ret_path, bytes, "%s/weir-shm-XXXXXX", base ? base : "/tmp");
    cr_assert_not_null(mkdtemp(ret_path));
}

Test(shm_segment, makes_files_that_nobody_else_may_read_and_follows_no_link)
{
    char folder[200], path[250], link[250];
    make_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/table", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    struct weir__shm_segment segment;
    struct weir_error error = { { 0 } };
    cr_assert(weir__shm_segment_create(1000, path, &segment, &error), "%s", error.text);
    struct stat stat_of;
    cr_expect_eq(stat(path, &stat_of), 0);
    cr_expect_eq(stat_of.st_mode & 0777, 0600);
    weir__shm_segment_destroy(&segment);

    cr_expect_not(weir__shm_segment_create(1000, path, &segment, &error));
    cr_expect_eq(unlink(path), 0);
    cr_expect_eq(symlink(path, link), 0);
    cr_expect_not(weir__shm_segment_create(1000, link, &segment, NULL));
    cr_expect_eq(access(path, F_OK), -1);
    unlink(link);
    rmdir(folder);
}

static bool put_line(const char *path, const char *line)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0)
        return false;
    bool whole = write(fd, line, strlen(line)) == (ssize_t)strlen(line);
    return close(fd) == 0 && whole;
}

/* Namespaces of its own. An ordinary user gets them as the root of a user namespace,
 * which must be told who that is: a user that it doesn't know can't own a file in it. */
static bool leave_namespaces(void)
{
    char users[32], groups[32];
    snprintf(users, sizeof users, "0 %u 1", (unsigned)geteuid());
    snprintf(groups, sizeof groups, "0 %u 1", (unsigned)getegid());
    if (unshare(CLONE_NEWNS) == 0)
        return true;
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           put_line("/proc/self/setgroups", "deny") &&
           put_line("/proc/self/uid_map", users) &&
           put_line("/proc/self/gid_map", groups);
}

/* Mounts a tmpfs of 1 MiB at folder, where only this process sees it. */
static bool mount_small(const char *folder)
{
    return leave_namespaces() && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("weir-test", folder, "tmpfs", 0, "size=1m") == 0;
}

static void fill_up(const char *folder)
{
    char path[250];
    static const char block[4096];
    snprintf(path, sizeof path, "%s/other", folder);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    while (write(fd, block, sizeof block) > 0)
        ;
    close(fd);
}

/* In the child: 0 where all holds, else the number of what doesn't. */
static int no_room(const char *folder)
{
    char path[250];
    snprintf(path, sizeof path, "%s/table", folder);
    if (!mount_small(folder))
        return 77;
    struct weir_error error = { { 0 } };
    struct weir_shm_options too_large = { .entries = 4 * 1024 * 1024 / 17 },
                            fits = { .entries = 512 * 1024 / 17 };
    if (weir__shm_create_at(&too_large, path, &error))
        return 1;
    if (!strstr(error.text, "shared memory: ") || !strstr(error.text, strerror(ENOSPC)))
        return 2;
    if (access(path, F_OK) == 0)
        return 3;
    struct weir_store *store = weir__shm_create_at(&fits, path, NULL);
    if (!store)
        return 4;
    fill_up(folder);
    struct rule_kit kit;
    kit_init(&kit, (struct weir_rule)WEIR_FIXED_WINDOW("w", 1, WEIR_DAYS(1)));
    for (int i = 0; i < 200000; i++) {
        char subject[32];
        snprintf(subject, sizeof subject, "user:%d", i);
        ask_one(store, &kit, subject, 1, NULL);
    }
    weir_store_destroy(store);
    return 0;
}

/* A case from the field: the table's file was made long but not allocated, and the first
 * touch was a SIGBUS. */
Test(shm_segment, fails_at_start_where_there_is_no_room_and_never_later)
{
    char folder[200];
    int status;
    make_folder(folder, sizeof folder);
    pid_t child = fork();
    if (child == 0)
        _exit(no_room(folder));
    cr_assert_eq(waitpid(child, &status, 0), child);
    rmdir(folder);
    cr_assert(WIFEXITED(status), "killed by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) == 77)
        cr_skip("this user may mount no tmpfs, not even in a namespace of its own");
    cr_expect_eq(WEXITSTATUS(status), 0, "step %d", WEXITSTATUS(status));
}

/* ---- taking over what another process has left ------------------------------------ */

static bool
adopts(const struct weir__shm_segment *theirs, size_t entries, const char *why)
{
    struct weir__shm_segment ours;
    struct weir_error error = { { 0 } };
    int fd = dup(theirs->fd);
    if (weir__shm_segment_adopt(entries, fd, &ours, &error)) {
        weir__shm_segment_destroy(&ours);
        return true;
    }
    cr_expect(fcntl(fd, F_GETFD) >= 0, "it stays the caller's");
    cr_expect(strstr(error.text, why), "%s", error.text);
    close(fd);
    return false;
}

/* As if the program that made it had meant it so. */
static void sign(struct weir__shm_header *header)
{
    static const uint8_t no_secret[16];
    header->check =
        weir__siphash128(no_secret, header, offsetof(struct weir__shm_header, check));
}

Test(shm_segment, a_segment_that_is_taken_over_is_the_same_memory)
{
    struct weir__shm_segment theirs = made(1000), ours;
    cr_assert(weir__shm_segment_adopt(1000, dup(theirs.fd), &ours, NULL));
    theirs.buckets[3].ways[5].hi = 77;
    cr_expect_eq(ours.buckets[3].ways[5].hi, 77);
    weir__shm_segment_destroy(&theirs);
    cr_expect_eq(ours.buckets[3].ways[5].hi, 77, "it outlives its maker");
    weir__shm_segment_destroy(&ours);
}

Test(shm_segment, of_another_size_layout_boot_or_clock_none_is_taken_over)
{
    struct weir__shm_segment theirs = made(1000);
    struct weir__shm_header as_made = *theirs.header;
    cr_expect(adopts(&theirs, 1000, ""));
    cr_expect_not(adopts(&theirs, 2000, "size"));
    theirs.header->layout++;
    sign(theirs.header);
    cr_expect_not(adopts(&theirs, 1000, "layout"));
    *theirs.header = as_made;
    theirs.header->boot_id[7] ^= 1;
    cr_expect_not(adopts(&theirs, 1000, "damaged"));
    sign(theirs.header);
    cr_expect_not(adopts(&theirs, 1000, "boot"));
    *theirs.header = as_made;
    theirs.header->epoch_us += 2 * WEIR__SHM_EPOCH_MARGIN_US;
    sign(theirs.header);
    cr_expect_not(adopts(&theirs, 1000, "clock"));
    *theirs.header = as_made;
    cr_expect(adopts(&theirs, 1000, ""));
    weir__shm_segment_destroy(&theirs);
}

Test(shm_segment, what_could_shrink_under_us_is_not_taken_over)
{
    struct weir__shm_segment theirs = made(1000), loose = theirs;
    struct weir_error error = { { 0 } };
    loose.fd = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert_eq(write(loose.fd, theirs.header, theirs.bytes), (ssize_t)theirs.bytes);
    cr_expect_not(weir__shm_segment_adopt(1000, loose.fd, &theirs, &error));
    cr_expect(strstr(error.text, "none of ours"), "%s", error.text);
    close(loose.fd);
    int pipe_fds[2];
    cr_assert_eq(pipe(pipe_fds), 0);
    cr_expect_not(weir__shm_segment_adopt(1000, pipe_fds[0], &theirs, NULL));
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    weir__shm_segment_destroy(&theirs);
}
