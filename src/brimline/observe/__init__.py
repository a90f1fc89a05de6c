"""The only room that looks at the world. Today: a cluster, through the ordinary admin protocol."""
