"""What guard and gateway share as processes that run for months: clock, log lines, signals, workers, durable files."""
