/* What is answered when there is no endpoint, when a hook or handler failed, and when
 * Weir itself has to refuse.
 *
 * Only fills in the response; which hooks still run is life.c's. */
#include "answer.h"

#include <string.h>

int weir__answer_not_found(struct weir *w)
{
    return weir_problem(w, 404, "NotFound", NULL);
}

int weir__answer_not_allowed(struct weir *w)
{
    weir_set_header(w, "Allow", w->allow);
    return weir_problem(w, 405, "MethodNotAllowed", NULL);
}

int weir__answer_options(struct weir *w)
{
    weir_set_header(w, "Allow", w->allow);
    return 204;
}

int weir__answer_authorized(struct weir *w)
{
    (void)w;
    return 200;
}

static int replace(struct weir *w, int status, const char *code, const char *detail)
{
    weir__response_reset(w);
    w->replaced = true;
    weir_problem(w, status, code, detail);
    w->status = status;
    return status;
}

int weir__answer_refusal(struct weir *w)
{
    return replace(w, w->refusal.status, w->refusal.code, w->refusal.detail);
}

void weir__answer_internal_error(struct weir *w)
{
    replace(w, 500, "InternalError", NULL);
}

void weir__answer_overloaded(struct weir *w)
{
    w->unserved = !w->served;
    replace(w, 503, "Overloaded", NULL);
    weir_set_header(w, "Retry-After", "1");
}

void weir__answer_last_resort(struct weir *w)
{
    static const char body[] = "{\"type\":\"about:blank\",\"title\":\"Internal Server "
                               "Error\",\"status\":500,\"code\":\"InternalError\"}";
    static const char with_body[] = "Status: 500 Internal Server Error\r\n"
                                    "Content-Type: application/problem+json\r\n"
                                    "Content-Length: 90\r\n\r\n";
    static const char bare[] = "Status: 500 Internal Server Error\r\n"
                               "Content-Type: text/plain\r\n"
                               "Content-Length: 0\r\n\r\n";
    _Static_assert(sizeof body - 1 == 90, "the head says this length");
    weir__buf_reset(&w->out, WEIR__OUT_MAX);
    w->status = 500;
    w->replaced = true;
    bool fits = weir__buf_append(&w->out, body, sizeof body - 1);
    w->head_text = fits ? with_body : bare;
    w->head_len = strlen(w->head_text);
}
