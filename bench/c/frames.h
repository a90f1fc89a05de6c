/* Kafka frames over blocking sockets on loopback: four bytes of length, then that many bytes. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LENGTH = 4, CORRELATION_ID_IN_REQUEST = 8, LARGEST_FRAME = 8 << 20 };

static void die(const char *what) {
    perror(what);
    exit(1);
}

static struct sockaddr_in loopback(const char *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static void no_delay(int fd) {
    int on = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0) die("TCP_NODELAY");
}

static inline int connected_to(const char *port) {
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) die("connect");
    no_delay(fd);
    return fd;
}

static uint32_t read_int(const char *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return ntohl(value);
}

static void write_int(char *at, uint32_t value) {
    value = htonl(value);
    memcpy(at, &value, sizeof value);
}

/* The request to send, from a file that holds one frame. */
static inline size_t load_frame(const char *path, char *frame) {
    FILE *file = fopen(path, "rb");
    if (!file) die(path);
    size_t size = fread(frame, 1, LARGEST_FRAME, file);
    fclose(file);
    if (size < CORRELATION_ID_IN_REQUEST + 4 || read_int(frame) != size - LENGTH) {
        fprintf(stderr, "%s is not one frame\n", path);
        exit(1);
    }
    return size;
}

static inline void send_all(int fd, const char *from, size_t size) {
    while (size) {
        ssize_t sent = send(fd, from, size, MSG_NOSIGNAL);
        if (sent < 0) die("send");
        from += sent;
        size -= sent;
    }
}

/* One whole frame; 0 at the end of the connection. Reads ahead never: the peer sends one frame at a time. */
static inline size_t receive_frame(int fd, char *into) {
    size_t have = 0, want = LENGTH;
    while (have < want) {
        ssize_t got = recv(fd, into + have, LARGEST_FRAME - have, 0);
        if (got < 0 && errno != ECONNRESET) die("recv");
        if (got <= 0) return 0;
        have += got;
        if (have >= LENGTH) want = LENGTH + read_int(into);
        if (want > LARGEST_FRAME || have > want) {
            fprintf(stderr, "%zu bytes are no single frame\n", have);
            exit(1);
        }
    }
    return have;
}

static inline int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}
