"""What lies in every log dir, by kind of file: a scan now and then."""
