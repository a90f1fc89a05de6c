/* Round trips of one frame at a time, over one connection to each port, in blocks that take turns.
   `pingpong FRAME ROUNDS BLOCK PORT…` prints a line per round: p50 and p99 in nanoseconds of each port. */
#include "frames.h"

static int ascending(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

int main(int count, char **arguments) {
    if (count < 5) return 2;
    char *request = malloc(LARGEST_FRAME), *answer = malloc(LARGEST_FRAME);
    size_t size = load_frame(arguments[1], request);
    int rounds = atoi(arguments[2]), block = atoi(arguments[3]), ports = count - 4;
    int *fds = calloc(ports, sizeof *fds);
    int64_t *times = calloc(block, sizeof *times);
    uint32_t id = 0;
    for (int port = 0; port < ports; port++) fds[port] = connected_to(arguments[4 + port]);
    for (int round = 0; round < rounds; round++) {
        for (int port = 0; port < ports; port++) {
            for (int ping = 0; ping < block; ping++) {
                write_int(request + CORRELATION_ID_IN_REQUEST, ++id);
                int64_t begin = nanoseconds();
                send_all(fds[port], request, size);
                size_t got = receive_frame(fds[port], answer);
                times[ping] = nanoseconds() - begin;
                if (got < LENGTH + 4 || read_int(answer + LENGTH) != id) {
                    fprintf(stderr, "port %s did not answer request %u\n", arguments[4 + port], id);
                    return 1;
                }
            }
            qsort(times, block, sizeof *times, ascending);
            printf("%lld %lld ", (long long)times[block / 2], (long long)times[block * 99 / 100]);
        }
        printf("\n");
    }
    return 0;
}
