"""Pages for browsers: documents as HTML. Looks at nothing, asks nobody; the guard and ``brimline web`` serve them."""
