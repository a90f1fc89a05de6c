/* The most trivial broker: answers each request with as many bytes and the same correlation id. `echo PORT`
   A thread a connection, because nothing answers one connection sooner than a blocking read. */
#include "frames.h"

#include <pthread.h>

static void *answer(void *argument) {
    int fd = (int)(intptr_t)argument;
    char *frame = malloc(LARGEST_FRAME);
    size_t size;
    while ((size = receive_frame(fd, frame))) {
        if (size >= CORRELATION_ID_IN_REQUEST + 4) write_int(frame + LENGTH, read_int(frame + CORRELATION_ID_IN_REQUEST));
        send_all(fd, frame, size);
    }
    free(frame);
    close(fd);
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    struct sockaddr_in address = loopback(arguments[1]);
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0) die("bind");
    if (listen(listener, 128) < 0) die("listen");
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) die("accept");
        no_delay(fd);
        pthread_t thread;
        if (pthread_create(&thread, NULL, answer, (void *)(intptr_t)fd)) die("pthread_create");
        pthread_detach(thread);
    }
}
