"""How Brimline's own clients recognise a gateway: an API that no broker has.

A gateway lists it in its ApiVersions answers, and that is all: nobody ever sends a request with this key. Clients skip
keys that they do not know. Its version is that of what the two tell each other (``describe_log_dirs_explained``): a
client that does not know it takes the gateway for a broker. Kafka hands out its numbers one by one from 0, so that this
one stays free.
"""

GATEWAY_API_KEY = 28271
GATEWAY_API_VERSIONS = (0, 0)
