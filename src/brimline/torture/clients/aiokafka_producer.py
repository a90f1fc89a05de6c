"""aiokafka's producer: plain by default, idempotent with ``--property enable_idempotence=true``."""

import asyncio
import time
from functools import partial

from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]
from aiokafka.errors import KafkaError  # type: ignore[import-untyped]
from aiokafka.structs import RecordMetadata  # type: ignore[import-untyped]

from brimline.torture.clients.child import Record, Report, asked_to_stop, due_records, parse_options, typed


async def main() -> None:
    options, stop = parse_options(), asked_to_stop()
    report = Report(options)
    producer = AIOKafkaProducer(
        bootstrap_servers=options.bootstrap_servers, client_id=options.name, **typed(options.properties)
    )
    await producer.start()
    sent, start = 0, time.monotonic()
    for due, record in due_records(options):
        await asyncio.sleep(max(0.0, start + due - time.monotonic()))
        if stop.is_set():
            break
        sent += 1
        report.sent(record.number)
        try:
            future = await producer.send(options.topic, record.value, partition=record.partition)
        except KafkaError as error:
            report.failed(record.number, type(error).__name__, str(error))
        else:
            future.add_done_callback(partial(finished, report, record))
    await producer.stop()
    await asyncio.sleep(0)  # the futures are done, their callbacks run in the loop's next round
    report.done(sent)


def finished(report: Report, record: Record, future: "asyncio.Future[RecordMetadata]") -> None:
    if error := future.exception():
        report.failed(record.number, type(error).__name__, str(error))
    else:
        report.acked(record.number, record.partition, future.result().offset)


if __name__ == "__main__":
    asyncio.run(main())
