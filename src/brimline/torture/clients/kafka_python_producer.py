"""kafka-python's producer, idempotent as it is by default."""

from functools import partial
from typing import Any

from kafka.errors import KafkaError

from brimline.torture.clients.child import Record, Report, asked_to_stop, paced_records, parse_options, typed
from brimline.torture.kafka_clients import kafka_producer


def main() -> None:
    options, stop = parse_options(), asked_to_stop()
    report, sent = Report(options), 0
    with kafka_producer(options.bootstrap_servers, client_id=options.name, **typed(options.properties)) as producer:
        for record in paced_records(options, stop):
            sent += 1
            report.sent(record.number)
            try:
                future = producer.send(options.topic, record.value, partition=record.partition)
            except KafkaError as error:
                failed(report, record, error)
            else:
                future.add_callback(partial(stored, report, record))
                future.add_errback(partial(failed, report, record))
        producer.flush()
    report.done(sent)


def stored(report: Report, record: Record, metadata: Any) -> None:
    report.acked(record.number, metadata.partition, metadata.offset)


def failed(report: Report, record: Record, error: BaseException) -> None:
    report.failed(record.number, type(error).__name__, str(error))


if __name__ == "__main__":
    main()
