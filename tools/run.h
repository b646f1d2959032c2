/* What weir-run and the library that it has preloaded know of each other. */
#ifndef WEIR_TOOLS_RUN_H
#define WEIR_TOOLS_RUN_H

/* The process in which weir-run becomes the program. Not of the form of an option's. */
#define RUN_PID "_WEIR_RUN_PID"

#define RUN_LIBRARY "weir-run.so"

#endif
