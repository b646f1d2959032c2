/* The alarms of a loop. Private to loop*.c. */
#ifndef WEIR_NET_LOOP_ALARM_H
#define WEIR_NET_LOOP_ALARM_H

#include "net/loop.h"

/* Makes the wheel and the clock that rings for it. False with errno. */
bool weir__loop_alarms_init(struct weir__loop *loop);
void weir__loop_alarms_finish(struct weir__loop *loop);

/* Fires what is due. In a turn. Costs one look where nothing is. */
void weir__loop_alarms_run(struct weir__loop *loop, int64_t now_us);

#endif
