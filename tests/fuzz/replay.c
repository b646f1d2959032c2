/* Runs a fuzz target over files and folders of inputs, without a fuzzer: so every build
 * tries the seeds, the crashes of the past among them. */
#include "fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>

static int inputs;

static void replay_file(const char *path, size_t size)
{
    uint8_t *bytes = malloc(size ? size : 1);
    FILE *file = fopen(path, "rb");
    MUST(bytes && file && fread(bytes, 1, size, file) == size);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    inputs++;
}

static void replay(const char *path)
{
    struct stat status;
    MUST(stat(path, &status) == 0);
    if (!S_ISDIR(status.st_mode)) {
        replay_file(path, (size_t)status.st_size);
        return;
    }
    DIR *folder = opendir(path);
    MUST(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char inside[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
        replay(inside);
    }
    closedir(folder);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    printf("%d inputs\n", inputs);
    return inputs > 0 ? 0 : 1;
}
