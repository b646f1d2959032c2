/* hiredis' reader with reply functions of our own, which write into one struct. The only
 * file that includes hiredis.
 *
 * The reader itself keeps an unfinished reply however long it is said to become; the
 * bound is set here, by what it has left over each time. */
#include "store/redis_reply.h"

#include <stdlib.h>
#include <string.h>

#include <hiredis/read.h>

struct weir__redis_replies {
    redisReader *reader;
    struct weir__redis_reply reply; /* being read */
    bool broken;
};

static struct weir__redis_reply *reply_of(const redisReadTask *task)
{
    return &((struct weir__redis_replies *)task->privdata)->reply;
}

/* Elements of an array say nothing that anybody wants to know. The reader takes NULL for
 * lack of memory, so each function returns the struct. */
static void *other(const redisReadTask *task)
{
    struct weir__redis_reply *reply = reply_of(task);
    reply->kind = WEIR__REDIS_OTHER;
    reply->len = 0;
    reply->bytes[0] = '\0';
    return reply;
}

static void *make_string(const redisReadTask *task, char *bytes, size_t len)
{
    struct weir__redis_reply *reply = reply_of(task);
    if (task->parent)
        return reply;
    if (task->type == REDIS_REPLY_STRING && len > WEIR__REDIS_STRING_MAX)
        return other(task);
    reply->kind = task->type == REDIS_REPLY_STRING  ? WEIR__REDIS_STRING
                  : task->type == REDIS_REPLY_ERROR ? WEIR__REDIS_ERROR
                                                    : WEIR__REDIS_STATUS;
    reply->len = len < WEIR__REDIS_STRING_MAX ? len : WEIR__REDIS_STRING_MAX;
    memcpy(reply->bytes, bytes, reply->len);
    reply->bytes[reply->len] = '\0';
    return reply;
}

#ifdef REDIS_REPLY_MAP /* since hiredis 1.0 */
static void *make_array(const redisReadTask *task, size_t len)
#else
static void *make_array(const redisReadTask *task, int len)
#endif
{
    (void)len;
    return other(task);
}

static void *make_integer(const redisReadTask *task, long long value)
{
    (void)value;
    return other(task);
}

static void free_nothing(void *object)
{
    (void)object;
}

/* Zeros where hiredis 1.0 has functions for RESP3, which nobody here asks for: the reader
 * then makes nothing of such a reply. */
static redisReplyObjectFunctions functions = {
    .createString = make_string,
    .createArray = make_array,
    .createInteger = make_integer,
    .createNil = other,
    .freeObject = free_nothing,
};

struct weir__redis_replies *weir__redis_replies_create(void)
{
    struct weir__redis_replies *replies = calloc(1, sizeof *replies);
    if (!replies)
        return NULL;
    replies->reader = redisReaderCreateWithFunctions(&functions);
    if (!replies->reader) {
        free(replies);
        return NULL;
    }
    replies->reader->privdata = replies;
    return replies;
}

void weir__redis_replies_destroy(struct weir__redis_replies *replies)
{
    if (!replies)
        return;
    redisReaderFree(replies->reader);
    free(replies);
}

bool weir__redis_replies_feed(struct weir__redis_replies *replies,
                              const void *bytes,
                              size_t len)
{
    if (!replies->broken &&
        redisReaderFeed(replies->reader, (const char *)bytes, len) != REDIS_OK)
        replies->broken = true;
    return !replies->broken;
}

enum weir__redis_next weir__redis_replies_next(struct weir__redis_replies *replies,
                                               struct weir__redis_reply *ret_reply)
{
    redisReader *reader = replies->reader;
    void *got = NULL;
    if (!replies->broken && redisReaderGetReply(reader, &got) != REDIS_OK)
        replies->broken = true;
    if (!replies->broken && got) {
        *ret_reply = replies->reply;
        return WEIR__REDIS_READY;
    }
    if (!replies->broken && reader->len - reader->pos > WEIR__REDIS_REPLY_MAX)
        replies->broken = true;
    return replies->broken ? WEIR__REDIS_BROKEN : WEIR__REDIS_MORE;
}

bool weir__redis_is_error(const struct weir__redis_reply *reply, const char *word)
{
    if (reply->kind != WEIR__REDIS_ERROR)
        return false;
    size_t len = strlen(word);
    const char *at = reply->bytes;
    if (strncmp(at, "ERR Error running script", 24) == 0) {
        at = strstr(at, ": -");
        if (!at)
            return false;
        at += 3;
    }
    return strncmp(at, word, len) == 0 && (at[len] == ' ' || at[len] == '\0');
}
