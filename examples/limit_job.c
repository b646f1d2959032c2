/* A program that sends mails, and never more of them than it may: 5 at once and 2 a
 * second to each customer, 8 a minute in all. No web server, no request: only the
 * limiter.
 *
 *     cc limit_job.c $(pkg-config --cflags --libs weir) -o limit_job && ./limit_job */
#include <stdio.h>
#include <stdlib.h>
#include <weir/limiter.h>

static const struct weir_rule *const mail_limits =
    WEIR_LIMITS(WEIR_TOKEN_BUCKET("customer", 5, 2, WEIR_SECONDS(1)),
                WEIR_FIXED_WINDOW("all", 8, WEIR_MINUTES(1), .by = WEIR_BY_EVERYBODY));

/* Says which rules hold it back, and for how long. */
static void print_refusal(const char *customer, const struct weir_decision *decision)
{
    for (unsigned i = 0; i < decision->rules_len; i++)
        if (!decision->rules[i].allowed)
            printf("%s: not now, rule \"%s\", again in %lld ms\n",
                   customer,
                   decision->rules[i].rule->name,
                   (long long)((decision->rules[i].retry_us + 999) / 1000));
}

static void send_mails(struct weir_limiter *limiter, const char *customer, int mails)
{
    struct weir_caller caller;
    struct weir_decision decision;
    if (!weir_caller_user(&caller, customer))
        return;
    for (int i = 0; i < mails; i++) {
        struct weir_limit_query query = { .caller = &caller };
        if (weir_limit_decide(limiter, &query, &decision))
            printf("%s: sent\n", customer);
        else
            print_refusal(customer, &decision);
    }
}

int main(void)
{
    struct weir_error error = { { 0 } };
    struct weir_store *store = weir_shm_create(NULL, &error);
    struct weir_limiter *limiter = NULL;
    if (store)
        limiter = weir_limiter_create(
            &(struct weir_limiter_options){
                .store = store, .bucket = "mails", .limits = mail_limits },
            &error);
    if (!limiter) {
        fprintf(stderr, "limit_job: %s\n", error.text);
        weir_store_destroy(store);
        return EXIT_FAILURE;
    }
    send_mails(limiter, "alice", 6);
    send_mails(limiter, "bob", 4);
    weir_limiter_destroy(limiter);
    weir_store_destroy(store);
    return EXIT_SUCCESS;
}
