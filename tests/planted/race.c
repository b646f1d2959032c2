/* Two threads count in one variable without a lock. */
#include <pthread.h>
#include <stdio.h>

static long count;

static void *count_on(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100000; i++)
        count++;
    return NULL;
}

int main(void)
{
    pthread_t other;

    if (pthread_create(&other, NULL, count_on, NULL) != 0)
        return 1;
    count_on(NULL);
    pthread_join(other, NULL);
    printf("%ld\n", count);
    return 0;
}
