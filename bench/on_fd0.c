/* Runs a program with a listening unix socket on descriptor 0, as spawners of FastCGI
 * programs do: on_fd0 PATH PROGRAM [ARGUMENT]... */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (argc < 3 || strlen(argv[1]) >= sizeof address.sun_path)
        return 64;
    memcpy(address.sun_path, argv[1], strlen(argv[1]));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        chmod(argv[1], 0666) < 0 || listen(fd, 1024) < 0 || dup2(fd, 0) < 0) {
        perror(argv[1]);
        return 71;
    }
    execv(argv[2], argv + 2);
    perror(argv[2]);
    return 71;
}
