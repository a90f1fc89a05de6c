"""Idempotent producers: after a refusal, nothing of theirs may pass before what was refused.

**Invariant.** Of one producer id, epoch and partition, no batch is admitted while one with a lower sequence stands
refused with a retriable code. So whatever of an epoch is stored is stored in the order of its sequences, and a batch
that the client still means to retry finds its place free.

**Why a gateway must see to it.** A broker that has no state for a producer accepts any first sequence. Refuse sequence
0, let 1 through a moment later because space came back in between, and the broker takes 1 as the beginning: the retry
of 0 is out of order for ever. Java then fails it at the delivery timeout; librdkafka reports it delivered, and it is
nowhere.

**The rule.** One entry is kept for each producer id and partition: the lowest sequence that stands refused, with its
epoch and the time. By it, a batch that arrives is

=============================  =========================================================================
the batch                      its fate
=============================  =========================================================================
of a newer epoch               the entry is forgotten; judged by the fence alone
of an older epoch              judged by the fence alone; the entry stays
the refused sequence itself    judged by the fence; admitted, the entry is forgotten; refused, it is renewed
a lower sequence               judged by the fence; admitted, the entry stays; refused, it becomes the entry
0, from a producer that began  the entry is forgotten; judged by the fence alone
anew
a higher sequence              refused, fence or no fence; the entry stays as it is
=============================  =========================================================================

An older epoch is a straggler from a connection that its client has given up. It must not wipe out what is remembered of
the epoch that counts. Epochs never wrap: a producer that has used them up gets a new id.

Sequences wrap behind 2**31 - 1, so higher and lower are told by the shorter way round. A 0 that follows closely on a
sequence before the wrap is a higher one, and no new beginning.

**Expiry.** An entry counts for a limited time after its own sequence was last refused. Refusing higher ones does not
renew it: a client that never brings the refused sequence back must not be shut out for ever. A client that retries
renews it every few seconds, so the time only has to be longer than a client may be silent and then go on. Expiry also
ends the one wait that nobody can: a copy of a batch that has landed is refused on a connection that its client has
abandoned.

**Final codes** need none of this: the client gives the batch up and numbers what follows anew. Nothing is remembered
for them; an entry that is left from a time with a retriable code goes on until its sequence, or a lower one, is finally
refused.
"""

from typing import NamedTuple

DEFAULT_EXPIRY_SECONDS = 300
"""The longest delivery timeout among the defaults of clients is librdkafka's, five minutes; Java's is two."""

_SEQUENCES = 1 << 31
_HALF = _SEQUENCES >> 1


class RefusedSequence(NamedTuple):
    """The lowest sequence that stands refused. ``refused_at`` is in seconds of the time of day."""

    epoch: int
    sequence: int
    refused_at: int

    def has_expired(self, now: int, expiry_seconds: int) -> bool:
        return now - self.refused_at >= expiry_seconds


class Ruling(NamedTuple):
    """``held`` is the entry as it must be from now on: the one before, another, or none."""

    is_refused: bool
    held: RefusedSequence | None


def is_above(sequence: int, other: int) -> bool:
    return 0 < (sequence - other) % _SEQUENCES < _HALF


def rule_on(
    epoch: int,
    sequence: int,
    held: RefusedSequence | None,
    *,
    is_fenced: bool,
    is_retriable: bool,
    now: int,
    expiry_seconds: int = DEFAULT_EXPIRY_SECONDS,
) -> Ruling:
    """Judge one batch. ``is_retriable`` says what the code of a refusal is to clients."""
    if held is not None and held.has_expired(now, expiry_seconds):
        held = None
    if held is not None:
        if epoch < held.epoch:
            return Ruling(is_refused=is_fenced, held=held)
        if epoch == held.epoch and is_above(sequence, held.sequence):
            return Ruling(is_refused=True, held=held)
        has_begun_anew = epoch > held.epoch or sequence == 0 != held.sequence
        if has_begun_anew:
            held = None
    if is_fenced:
        remembered = RefusedSequence(epoch, sequence, now) if is_retriable else None
        return Ruling(is_refused=True, held=remembered)
    if held is not None and sequence == held.sequence:
        held = None
    return Ruling(is_refused=False, held=held)
