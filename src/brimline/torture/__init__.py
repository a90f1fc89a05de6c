"""Torture: real clients, a real broker with gateway and guard, faults by a seeded schedule, and a judge.

::

    schedule ──▶ run ──▶ faults ──▶ world (sandbox, gateways, guards) ◀── load (clients)
                  │                            ▲
                  ▼                            │
               history ◀────────────────── witness          history ──▶ judge ──▶ verdicts

``run`` does its worst and writes down what it and everybody else saw (``history``). ``judge`` is a pure function of
that file, so a run can be judged again, and every verdict can be followed to its lines.
"""
