"""The only room that looks at the world: a cluster through the ordinary admin protocol, volumes, log dirs."""

from brimline.observe.client.deferred import defer_clients

# Before any module of this room imports the client library.
defer_clients()
