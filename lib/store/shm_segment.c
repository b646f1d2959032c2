/* Makes, reserves, maps and recognises the memory of a shared-memory store. What the
 * words in it mean is shm_table.c's affair; nothing here runs while requests do. */
#include "store/shm_segment.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"

#define HEADER_BYTES ((size_t)4096)

_Static_assert(sizeof(struct weir__shm_header) <= HEADER_BYTES, "one page");
_Static_assert(sizeof(struct weir__shm_bucket) == 256, "four cache lines");
_Static_assert(sizeof(struct weir__shm_stripe) == 64, "one cache line");

static size_t bytes_of(uint64_t buckets)
{
    return HEADER_BYTES + WEIR__SHM_STRIPES * sizeof(struct weir__shm_stripe) +
           (WEIR__SHM_OVERFLOW_BUCKETS + buckets) * sizeof(struct weir__shm_bucket);
}

static uint64_t buckets_for(size_t entries)
{
    if (entries == 0)
        entries = WEIR__SHM_ENTRIES_DEFAULT;
    return (entries + WEIR__SHM_WAYS - 1) / WEIR__SHM_WAYS;
}

/* What the kernel would give without swapping or killing; no bound where it doesn't say.
 * Asked because reserving more would not fail but wake the OOM killer. */
static uint64_t available_bytes(void)
{
    char line[128];
    unsigned long long kib = UINT64_MAX / 1024;
    FILE *file = fopen("/proc/meminfo", "re");
    if (!file)
        return UINT64_MAX;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            break;
    fclose(file);
    return (uint64_t)kib * 1024;
}

static int open_memory(size_t bytes, struct weir_error *ret_error)
{
    if (bytes > available_bytes()) {
        weir__error(ret_error, "shared memory: %zu bytes are not free", bytes);
        return -1;
    }
    int fd = memfd_create("weir", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        weir__error(ret_error, "shared memory: memfd_create: %s", strerror(errno));
    return fd;
}

static int open_file(const char *path, struct weir_error *ret_error)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        weir__error(ret_error, "shared memory: %s: %s", path, strerror(errno));
    return fd;
}

/* A file that is only made long has no pages: the first touch of one that the disk or
 * tmpfs can't give is a SIGBUS, so that they are all asked for now. */
static bool reserve(int fd, size_t bytes, struct weir_error *ret_error)
{
    int failure;
    do
        failure = posix_fallocate(fd, 0, (off_t)bytes);
    while (failure == EINTR);
    if (failure)
        return weir__error(ret_error,
                           "shared memory: %zu bytes can't be had: %s",
                           bytes,
                           strerror(failure));
    return true;
}

/* Leaves zeros where the kernel doesn't tell. */
static void read_boot_id(uint8_t ret_id[16])
{
    static const char digits[] = "0123456789abcdef";
    char text[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file && !fgets(text, sizeof text, file))
        text[0] = '\0';
    if (file)
        fclose(file);
    unsigned nibbles = 0;
    for (const char *at = text; *at != '\0' && nibbles < 32; at++) {
        const char *digit = strchr(digits, *at);
        if (!digit)
            continue;
        ret_id[nibbles / 2] = (uint8_t)(ret_id[nibbles / 2] << 4 | (digit - digits));
        nibbles++;
    }
}

static struct weir__hash128 header_check(const struct weir__shm_header *header)
{
    static const uint8_t no_secret[16];
    return weir__siphash128(no_secret, header, offsetof(struct weir__shm_header, check));
}

static void fill_buckets(struct weir__shm_bucket *buckets, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        for (unsigned way = 0; way < WEIR__SHM_WAYS; way++)
            buckets[i].ways[way].lo = way + 1;
}

/* Writes to every page on the way: each bucket has 15 holes, numbered 1 to 15. */
static void fill(struct weir__shm_segment *segment, uint64_t buckets)
{
    struct weir__shm_header *header = segment->header;
    assert(header);
    *header = (struct weir__shm_header){
        .magic = WEIR__SHM_MAGIC,
        .layout = WEIR__SHM_LAYOUT,
        .header_bytes = HEADER_BYTES,
        .segment_bytes = segment->bytes,
        .buckets = buckets,
        .overflow_buckets = WEIR__SHM_OVERFLOW_BUCKETS,
        .stripes = WEIR__SHM_STRIPES,
        .epoch_us = weir__clock_now_us() - WEIR__SHM_EPOCH_MARGIN_US,
        .wall_epoch_us = weir__clock_wall_us() - WEIR__SHM_EPOCH_MARGIN_US,
    };
    read_boot_id(header->boot_id);
    weir__random_bytes(header->key, sizeof header->key);
    header->check = header_check(header);
    for (unsigned i = 0; i < WEIR__SHM_STRIPES; i++)
        segment->stripes[i].next_hole = WEIR__SHM_WAYS + 1;
    fill_buckets(segment->overflow, WEIR__SHM_OVERFLOW_BUCKETS);
    fill_buckets(segment->buckets, buckets);
}

static bool map(struct weir__shm_segment *segment, struct weir_error *ret_error)
{
    void *memory = mmap(NULL,
                        segment->bytes,
                        PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_POPULATE,
                        segment->fd,
                        0);
    if (memory == MAP_FAILED)
        return weir__error(ret_error,
                           "shared memory: %zu bytes can't be mapped: %s",
                           segment->bytes,
                           strerror(errno));
    char *at = memory;
    segment->header = memory;
    segment->stripes = (void *)(at += HEADER_BYTES);
    segment->overflow =
        (void *)(at += WEIR__SHM_STRIPES * sizeof(struct weir__shm_stripe));
    segment->buckets =
        (void *)(at + WEIR__SHM_OVERFLOW_BUCKETS * sizeof(struct weir__shm_bucket));
    return true;
}

bool weir__shm_segment_create(size_t entries,
                              const char *path,
                              struct weir__shm_segment *ret,
                              struct weir_error *ret_error)
{
    if (entries > WEIR__SHM_ENTRIES_MAX)
        return weir__error(ret_error, "shared memory: %zu entries are too many", entries);
    uint64_t buckets = buckets_for(entries);
    struct weir__shm_segment segment = { .bytes = bytes_of(buckets) };
    segment.fd =
        path ? open_file(path, ret_error) : open_memory(segment.bytes, ret_error);
    if (segment.fd < 0)
        return false;
    if (!reserve(segment.fd, segment.bytes, ret_error) || !map(&segment, ret_error)) {
        close(segment.fd);
        if (path)
            unlink(path);
        return false;
    }
    /* Nobody who gets the descriptor can take pages away from under us; a file that is no
     * memfd has no seals, there its mode is the guard. */
    if (!path)
        fcntl(segment.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    fill(&segment, buckets);
    *ret = segment;
    return true;
}

/* Of another boot, or of another time namespace, the times mean nothing here. */
static bool is_of_now(const struct weir__shm_segment *segment,
                      struct weir_error *ret_error)
{
    uint8_t boot_id[16] = { 0 };
    read_boot_id(boot_id);
    if (memcmp(boot_id, segment->header->boot_id, sizeof boot_id) != 0)
        return weir__error(ret_error, "shared memory: of another boot");
    if (segment->header->epoch_us > weir__clock_now_us())
        return weir__error(ret_error, "shared memory: of another clock");
    return true;
}

bool weir__shm_segment_adopt(size_t entries,
                             int fd,
                             struct weir__shm_segment *ret,
                             struct weir_error *ret_error)
{
    struct weir__shm_segment segment = { .fd = fd };
    struct stat stat;
    int seals = fcntl(fd, F_GET_SEALS);
    /* Whoever could take pages away could kill us with SIGBUS. */
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &stat) < 0)
        return weir__error(ret_error,
                           "shared memory: what was handed on is none of ours");
    segment.bytes = (size_t)stat.st_size;
    if (entries > WEIR__SHM_ENTRIES_MAX ||
        segment.bytes != bytes_of(buckets_for(entries)))
        return weir__error(ret_error, "shared memory: the size that is asked for is new");
    if (!map(&segment, ret_error))
        return false;
    assert(segment.header);
    if (!weir__shm_segment_check(&segment, ret_error) ||
        !is_of_now(&segment, ret_error)) {
        munmap(segment.header, segment.bytes);
        return false;
    }
    *ret = segment;
    return true;
}

void weir__shm_segment_touch(const struct weir__shm_segment *segment)
{
#ifdef MADV_POPULATE_WRITE
    if (madvise(segment->header, segment->bytes, MADV_POPULATE_WRITE) == 0)
        return;
#endif
    const char *memory = (const char *)segment->header;
    for (size_t at = 0; at < segment->bytes; at += HEADER_BYTES)
        (void)*(const volatile char *)(memory + at);
}

int64_t weir__shm_now_us(const struct weir__shm_segment *segment)
{
    int64_t now_us = weir__clock_now_us() - segment->header->epoch_us;
    return now_us > 1 ? now_us : 1;
}

int64_t weir__shm_wall_us(const struct weir__shm_segment *segment)
{
    int64_t wall_us = weir__clock_wall_us(),
            first_us = segment->header->wall_epoch_us + 1;
    return wall_us > first_us ? wall_us : first_us;
}

bool weir__shm_segment_check(const struct weir__shm_segment *segment,
                             struct weir_error *ret_error)
{
    const struct weir__shm_header *header = segment->header;
    struct weir__hash128 check = header_check(header);
    if (header->magic != WEIR__SHM_MAGIC)
        return weir__error(ret_error, "shared memory: not a segment of Weir's");
    if (header->layout != WEIR__SHM_LAYOUT || header->header_bytes != HEADER_BYTES)
        return weir__error(ret_error,
                           "shared memory: layout %u, this program has %u",
                           header->layout,
                           WEIR__SHM_LAYOUT);
    if (check.lo != header->check.lo || check.hi != header->check.hi)
        return weir__error(ret_error, "shared memory: the header is damaged");
    if (header->segment_bytes != segment->bytes ||
        header->segment_bytes != bytes_of(header->buckets))
        return weir__error(ret_error, "shared memory: the size is not the header's");
    return true;
}

void weir__shm_segment_destroy(struct weir__shm_segment *segment)
{
    munmap(segment->header, segment->bytes);
    close(segment->fd);
}
