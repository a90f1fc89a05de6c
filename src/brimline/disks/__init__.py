"""The disks of a broker, watched: by the guard, and by the gateway on its own."""
