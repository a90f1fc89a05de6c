"""The files of a log dir, found and told apart while a broker writes in it."""
