/* The same answer by plain libfcgi after one blocking question to Redis by hiredis: a
 * connection for each thread, a script that counts in a fixed window.
 *
 *   libfcgi_redis THREADS REDIS_SOCKET */
#include <fcgiapp.h>
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char script[] = "local n = redis.call('INCR', KEYS[1]) "
                             "if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end "
                             "return {n, redis.call('PTTL', KEYS[1])}";
static const char *path;

static void *serve(void *arg)
{
    FCGX_Request request;
    redisContext *redis = redisConnectUnix(path);
    redisReply *reply = redis ? redisCommand(redis, "SCRIPT LOAD %s", script) : NULL;
    char sha1[41] = "";
    (void)arg;
    if (!reply || reply->type != REDIS_REPLY_STRING)
        abort();
    snprintf(sha1, sizeof sha1, "%s", reply->str);
    freeReplyObject(reply);
    FCGX_InitRequest(&request, 0, 0);
    while (FCGX_Accept_r(&request) == 0) {
        const char *address = FCGX_GetParam("REMOTE_ADDR", request.envp);
        reply = redisCommand(
            redis, "EVALSHA %s 1 rate_limit:{ip:%s}:hello 60000", sha1, address);
        if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
            abort();
        FCGX_FPrintF(request.out,
                     "Status: 200 OK\r\n"
                     "Content-Type: text/plain; charset=utf-8\r\n"
                     "RateLimit: \"minute\";r=%lld;t=%lld\r\n"
                     "Content-Length: 14\r\n\r\n"
                     "Hello, world.\n",
                     1000000000 - reply->element[0]->integer,
                     reply->element[1]->integer / 1000 + 1);
        freeReplyObject(reply);
        FCGX_Finish_r(&request);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc != 3)
        return 64;
    path = argv[2];
    FCGX_Init();
    for (int i = 1; i < atoi(argv[1]); i++)
        pthread_create(&thread, NULL, serve, NULL);
    serve(NULL);
    return 0;
}
