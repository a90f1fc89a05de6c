/* As many answers as a connection gives while DEPTH requests are always under way.
   `pipeline FRAME DEPTH SECONDS PORT` prints the answers and the nanoseconds they took. */
#include "frames.h"

#include <fcntl.h>
#include <poll.h>

static uint32_t answered = 0;

/* Counts the frames in what was received, in order, whatever the pieces; returns what is left of the last one. */
static size_t count_answers(char *buffer, size_t have) {
    size_t at = 0;
    while (have - at >= LENGTH + 4) {
        size_t size = LENGTH + read_int(buffer + at);
        if (size > LARGEST_FRAME / 2) {
            fprintf(stderr, "an answer of %zu bytes\n", size);
            exit(1);
        }
        if (have - at < size) break;
        if (read_int(buffer + at + LENGTH) != answered + 1) {
            fprintf(stderr, "answer %u came instead of %u\n", read_int(buffer + at + LENGTH), answered + 1);
            exit(1);
        }
        answered++;
        at += size;
    }
    memmove(buffer, buffer + at, have - at);
    return have - at;
}

int main(int count, char **arguments) {
    if (count != 5) return 2;
    char *request = malloc(LARGEST_FRAME), *buffer = malloc(LARGEST_FRAME);
    size_t size = load_frame(arguments[1], request), sent_of_frame = 0, have = 0;
    uint32_t depth = atoi(arguments[2]), begun = 0;
    int64_t begin = nanoseconds(), end = begin + (int64_t)(atof(arguments[3]) * 1e9);
    int fd = connected_to(arguments[4]);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (nanoseconds() < end || answered < begun || sent_of_frame) {
        int may_send = sent_of_frame || (begun - answered < depth && nanoseconds() < end);
        struct pollfd ready = {.fd = fd, .events = POLLIN | (may_send ? POLLOUT : 0)};
        if (poll(&ready, 1, 10000) <= 0) die("nothing for ten seconds: poll");
        if (ready.revents & POLLIN) {
            ssize_t got = recv(fd, buffer + have, LARGEST_FRAME - have, 0);
            if (got == 0) {
                fprintf(stderr, "the connection was closed after %u answers\n", answered);
                return 1;
            }
            if (got < 0 && errno != EAGAIN) die("recv");
            if (got > 0) have = count_answers(buffer, have + got);
        }
        while (may_send) {
            if (!sent_of_frame) write_int(request + CORRELATION_ID_IN_REQUEST, ++begun);
            ssize_t sent = send(fd, request + sent_of_frame, size - sent_of_frame, MSG_NOSIGNAL);
            if (sent < 0 && errno != EAGAIN) die("send");
            if (sent < 0) {
                /* Begun, but not a byte of it is out: it stays to be sent. */
                if (!sent_of_frame) begun--;
                break;
            }
            sent_of_frame = (sent_of_frame + sent) % size;
            may_send = sent_of_frame || begun - answered < depth;
        }
    }
    printf("%u %lld\n", answered, (long long)(nanoseconds() - begin));
    return 0;
}
